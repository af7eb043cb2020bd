"""Lines of wikitext that hold nothing but words and plain links: they need no parser.

They are three quarters of an article's prose. They are set aside, with a mark in their place, so
that whatever stands around them is parsed as before.
"""

from __future__ import annotations

import re

PLAIN_LINK = re.compile(r"\[\[([^\[\]|]+)(?:\|([^\[\]]*))?\]\]")
"""Target and, if given, the text shown."""

MARKED = re.compile("\x02(\\d+)\x03")
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
        The wikitext with marks, and the lines that stand for each, by number.
    """
    found: list[str] = []

    def mark(lines: re.Match[str]) -> str:
        found.append(lines[0])
        return f"\x02{len(found) - 1}\x03"

    return _LINES.sub(mark, wikitext.replace("\x02", "").replace("\x03", "")), found


def put_back(text: str, lines: list[str]) -> str:
    """Replace marks by the lines that they stand for, as they were written."""
    return MARKED.sub(lambda mark: lines[int(mark[1])], text)


def without_bullets(lines: str) -> str:
    """Take off the marks of lists and indents that lines start with."""
    return _LIST.sub("", lines)
