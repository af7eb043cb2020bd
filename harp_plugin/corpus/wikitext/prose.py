"""Removes from wikitext what is not prose, before it is parsed.

References, templates and tables are more than a third of an article, and most of its parsing time
is spent on them. Only what is closed is removed; a stray ``{{`` is left to the parser. The parser
searches from each stray mark to the end of the page, so that a page with over a hundred of them
would take too long: there, the marks themselves are removed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container

from .cleanup import LESS_THAN
from .templates import HOLE, is_shown, leaves_hole

__all__ = ["VERBATIM_TAGS", "prose_only"]

VERBATIM_TAGS = frozenset({"nowiki"})
"""Tags whose content is shown as it stands."""

_INLINE_TAGS = frozenset({"ce", "chem", "hiero", "math", "score", "source", "syntaxhighlight"})
_MAX_UNCLOSED = 100
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_MARK = re.compile(
    r"<(?P<slash>/?)(?P<tag>nowiki|ref|math|gallery|timeline|score|syntaxhighlight|source|pre"
    r"|chem|ce|hiero)\b(?P<rest>[^<>]*)>"
    r"|\{\{\{[^{}]*\}\}\}|\{\{+|\}\}+|\{\||\|\}(?!\})|\|\}(?=\}\}(?!\}))",
    re.IGNORECASE,
)
_LINE_START = re.compile(r"(?:^|\n)[:\s]*\Z")
_NAME = re.compile(r"\{\{\s*([^|{}\[\]<>\n]*)")
_TAG = re.compile(r"<(?P<slash>/?)(?P<tag>[a-zA-Z]+)\b(?P<rest>[^<>]*)(?P<end>>?)")
_VOID_TAGS = frozenset({"br", "hr", "wbr", "img", "references"})
_LIST = re.compile(r"^([*#:;]{20})[*#:;]+", re.MULTILINE)
_LINK = re.compile(r"\[\[|\]\]")
_EXTERNAL = re.compile(r"\[(?=[a-zA-Z]+:|//)")


def prose_only(wikitext: str) -> str:
    """Remove comments, references, templates and tables.

    Templates that are known to show words stay. Others, and formulas, leave the mark `HOLE` where
    they stood inside a sentence. Where more than 100 marks of one kind are never closed, all marks
    of that kind are removed, and the words between them stay.
    """
    wikitext = _COMMENT.sub("", wikitext).replace(HOLE, "").replace(LESS_THAN, "")
    scan = _Scan(wikitext)
    spans = scan.spans
    if len(scan.opened) > _MAX_UNCLOSED:
        spans = sorted([*spans, *((start, start + 2) for _, start in scan.opened)])
    return _without_stray_marks(_without_spans(wikitext, spans, scan.holes))


class _Scan:
    """Finds what is not prose, and the marks that nothing closes.

    Attributes:
        spans: start and end of each piece to remove.
        opened: each mark that is not closed yet, and its offset.
        holes: where templates that are not known, or formulas, started inside a sentence.
    """

    def __init__(self, wikitext: str) -> None:
        self.wikitext = wikitext
        self.spans: list[tuple[int, int]] = []
        self.opened: list[tuple[str, int]] = []
        self.holes: set[int] = set()
        self.braces = 0
        last_end = {
            mark["tag"].lower(): mark.start() for mark in _MARK.finditer(wikitext) if mark["slash"]
        }
        open_tag: tuple[str, int] | None = None
        for mark in _MARK.finditer(wikitext):
            tag = (mark["tag"] or "").lower()
            if open_tag is not None:
                if tag == open_tag[0] and mark["slash"]:
                    if tag not in VERBATIM_TAGS:
                        self._remove(open_tag[1], mark.end(), tag if tag in _INLINE_TAGS else "")
                    open_tag = None
            elif not tag:
                self._braces(mark[0], *mark.span())
            elif mark["slash"]:
                continue
            elif mark["rest"].endswith("/"):
                if tag not in VERBATIM_TAGS:
                    self.spans.append(mark.span())
            elif mark.start() < last_end.get(tag, 0):
                open_tag = tag, mark.start()

    def _braces(self, mark: str, start: int, end: int) -> None:
        if mark == "{|":
            if self._starts_line(start):
                self.opened.append((mark, start))
        elif mark == "|}":
            if self.opened and self.opened[-1][0] == "{|" and self._starts_line(start):
                self._close("{|", end)
        elif mark.startswith("}"):
            for place in range(start, end - 1, 2):
                self._close("{{", place + 2)
        elif mark.endswith("}"):
            self.spans.append((start, end))
        else:
            self.opened += [("{{", place) for place in range(start, end - 1, 2)]
            self.braces += (end - start) // 2

    def _starts_line(self, place: int) -> bool:
        return _LINE_START.search(self.wikitext, max(0, place - 20), place) is not None

    def _close(self, opening: str, end: int) -> None:
        if opening == "{{" and not self.braces:
            return
        for depth in range(len(self.opened) - 1, -1, -1):
            if self.opened[depth][0] == opening:
                start = self.opened[depth][1]
                self.braces -= sum(1 for mark, _ in self.opened[depth:] if mark == "{{")
                del self.opened[depth:]
                named = _NAME.match(self.wikitext, start)
                name = named[1] if named and opening == "{{" else ""
                if opening == "{|" or not is_shown(name):
                    while self.spans and self.spans[-1][0] > start:
                        self.spans.pop()
                    self._remove(start, end, name)
                return

    def _remove(self, start: int, end: int, name: str) -> None:
        """Remove a piece; ``name`` is that of a template or a tag which can be in a sentence."""
        before, after = self.wikitext[max(0, start - 20) : start], self.wikitext[end : end + 20]
        if name and leaves_hole(name, before, after):
            self.holes.add(start)
        self.spans.append((start, end))


def _without_spans(
    text: str, spans: list[tuple[int, int]], holes: Container[int] = frozenset()
) -> str:
    pieces, position = [], 0
    for start, end in spans:
        if start >= position:
            pieces += [text[position:start], HOLE if start in holes else ""]
            position = end
    return "".join([*pieces, text[position:]])


def _without_stray_marks(wikitext: str) -> str:
    """Remove the marks of tags, links and lists where far too many are never closed."""
    wikitext = _LIST.sub(r"\1", wikitext)
    if wikitext.count("<") > _MAX_UNCLOSED:
        unclosed: Counter[str] = Counter()
        for tag in _TAG.finditer(wikitext):
            name = tag["tag"].lower()
            if not tag["end"]:
                unclosed[""] += 1
            elif name not in _VOID_TAGS and not tag["rest"].endswith("/"):
                unclosed[name] += -1 if tag["slash"] else 1
        if sum((+unclosed).values()) > _MAX_UNCLOSED:
            wikitext = _TAG.sub("", wikitext)
    if wikitext.count("[") - wikitext.count("]") > _MAX_UNCLOSED:
        wikitext = _EXTERNAL.sub("", wikitext)
    opened: list[tuple[int, int]] = []
    for mark in _LINK.finditer(wikitext):
        if mark[0] == "[[":
            opened.append(mark.span())
        elif opened:
            opened.pop()
    return _without_spans(wikitext, opened) if len(opened) > _MAX_UNCLOSED else wikitext
