"""Replaces lines of wikitext that hold only words and plain links, which need no parser.

Three quarters of the prose of an article are such lines. A mark stands in their place while the
rest is parsed, so that everything around them is parsed as before.
"""

from __future__ import annotations

import re

__all__ = ["MARK", "PLAIN_LINK", "put_back", "set_aside", "without_bullets"]

PLAIN_LINK = re.compile(r"\[\[([^\[\]|]+)(?:\|([^\[\]]*))?\]\]")
"""A link; its groups are the target and, if the link has one, the text that it shows."""

MARK = re.compile("\x02(\\d+)\x03")
"""The mark that stands for plain lines; its group is their number."""
_LINE = (
    r"(?!=|[*#:]*;|-{4}|\[\[[^\]\n]*//)"
    r"(?:[^\[\]{}<>&|\n:/]++|(?<![A-Za-z]):|:(?=\s|$)|/(?!/)"
    r"|\[\[[^\[\]{}<>&|\n/]++(?:\|[^\[\]{}<>&|\n]*+)?\]\])*+$"
)
_LINES = re.compile(rf"^(?=.){_LINE}(?:\n{_LINE})*+", re.MULTILINE)
_LIST = re.compile(r"^[*#:]+", re.MULTILINE)


def set_aside(wikitext: str) -> tuple[str, list[str]]:
    """Replace runs of plain lines by marks.

    Returns:
        The wikitext with the marks, and the lines of each mark by its number.
    """
    runs: list[str] = []

    def mark(lines: re.Match[str]) -> str:
        runs.append(lines[0])
        return f"\x02{len(runs) - 1}\x03"

    return _LINES.sub(mark, wikitext.replace("\x02", "").replace("\x03", "")), runs


def put_back(text: str, runs: list[str]) -> str:
    """Replace marks by their lines, as they stand in the wikitext."""
    return MARK.sub(lambda mark: runs[int(mark[1])], text)


def without_bullets(lines: str) -> str:
    """Remove the marks of lists and indents from the starts of lines."""
    return _LIST.sub("", lines)
