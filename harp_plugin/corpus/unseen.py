"""Wikitext without what no reader of the page's prose sees, taken out before it is parsed.

References, templates and tables are more than a third of an article and most of the time of its
parsing. Only what is closed is taken out: a stray ``{{`` is left to the parser.
"""

from __future__ import annotations

import re

TEXT_TEMPLATES = {"lang": -1, "transl": -1, "nowrap": 0, "nobr": 0, "abbr": 0, "convert": 0}
"""Templates that stand for one of their own positional arguments, with its index."""

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_MARK = re.compile(
    r"<(?:(?P<plain>nowiki|poem)\b[^<>]*(?<!/)>.*?</(?P=plain)\s*>"
    r"|(?P<tag>ref|math|gallery|timeline|score|syntaxhighlight|source|pre|chem)"
    r"\b(?:[^<>]*/>|[^<>]*>.*?</(?P=tag)\s*>))"
    r"|\{\{\{[^{}]*\}\}\}|\{\{+|\}\}+|\{\||\|\}(?!\})|\|\}(?=\}\}(?!\}))",
    re.DOTALL | re.IGNORECASE,
)
_LINE_START = re.compile(r"(?:^|\n)[:\s]*\Z")
_NAME = re.compile(r"\{\{\s*([^|{}\[\]<>\n-]*)")


def without_unseen(wikitext: str) -> str:
    """Take out comments, references, templates and tables.

    Templates that show their own words (`TEXT_TEMPLATES`) stay.
    """
    wikitext = _COMMENT.sub("", wikitext)
    spans: list[tuple[int, int]] = []
    opened: list[tuple[str, int]] = []
    for mark in _MARK.finditer(wikitext):
        start, end = mark.span()
        written = mark[0]
        if written == "{|":
            if _starts_line(wikitext, start):
                opened.append((written, start))
        elif written == "|}":
            if opened and opened[-1][0] == "{|" and _starts_line(wikitext, start):
                _close("{|", end, opened, spans, wikitext)
        elif written.startswith("}"):
            for at in range(start, end - 1, 2):
                _close("{{", at + 2, opened, spans, wikitext)
        elif written.startswith("{{") and not written.endswith("}"):
            opened += [("{{", at) for at in range(start, end - 1, 2)]
        elif not mark["plain"]:
            spans.append((start, end))
    return _cut(wikitext, spans)


def _starts_line(wikitext: str, place: int) -> bool:
    return _LINE_START.search(wikitext, max(0, place - 20), place) is not None


def _close(
    opening: str,
    end: int,
    opened: list[tuple[str, int]],
    spans: list[tuple[int, int]],
    wikitext: str,
) -> None:
    for depth in range(len(opened) - 1, -1, -1):
        if opened[depth][0] == opening:
            start = opened[depth][1]
            del opened[depth:]
            if opening == "{|" or not _shows_text(wikitext, start):
                while spans and spans[-1][0] > start:
                    spans.pop()
                spans.append((start, end))
            return


def _shows_text(wikitext: str, start: int) -> bool:
    name = _NAME.match(wikitext, start)
    return name is not None and name[1].strip().lower() in TEXT_TEMPLATES


def _cut(text: str, spans: list[tuple[int, int]]) -> str:
    pieces, position = [], 0
    for start, end in spans:
        pieces.append(text[position:start])
        position = end
    return "".join([*pieces, text[position:]])
