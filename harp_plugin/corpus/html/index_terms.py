"""Reads the indexes that people wrote for manuals: those of DocBook, Sphinx and Texinfo."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from selectolax.lexbor import LexborNode

from ..pages import EMPTY_INDEX, Dropped, IndexTerm
from .document import Document, walk
from .rules import Attributes

__all__ = ["NO_TARGET", "index_terms", "is_index"]

NO_TARGET = Dropped("index term that leads to no other page")

_LISTED = frozenset({"index", "indextable"})
_OF_ROWS = re.compile(r"index-\w\w|\w\w-entries-printindex|modindextable")
_BRACKET = re.compile(r" \([^()]*\)$")
_CANDIDATES = "div.index, table[class*=index]"
_ENTRIES = frozenset({"dt", "li"})
_LISTS = frozenset({"dl", "ol", "ul"})


@dataclass(slots=True)
class _Entry:
    """An entry of an index.

    Attributes:
        level: the number of lists around it.
        before: its text before the first link.
        linked: the text of its first link.
        references: where its links lead.
    """

    level: int
    before: list[str] = field(default_factory=list)
    linked: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)

    @property
    def label(self) -> str:
        """The text before the first link, else the text of the first link."""
        before = _folded("".join(self.before)).rstrip(" ,:")
        return before or _folded("".join(self.linked)).rstrip(" ,")


def index_terms(
    document: Document, resolve: Callable[[str], str | Dropped]
) -> list[IndexTerm | Dropped]:
    """Return the terms of the indexes on a page, each pair of a term and a target once.

    An entry that leads to no other page is dropped.

    A term below another one follows it behind a comma: ``aggregate function, built-in``. One that
    starts with a bracket stands in the place of the other's: below ``abort() (asyncio.Barrier
    method)``, ``(asyncio.Transport method)`` is ``abort() (asyncio.Transport method)``.

    Args:
        document: the parsed page.
        resolve: returns the key of the page to which a reference leads, or why it leads to none.
    """
    if document.body is None or document.body.css_first(_CANDIDATES) is None:
        return []
    found: dict[IndexTerm, None] = {}
    drops: list[Dropped] = []
    for node in _indexes(document.body):
        for term, reference in _rows(node) if _has_rows(node.attributes) else _list_entries(node):
            target = resolve(reference)
            if term and isinstance(target, str):
                found[IndexTerm(term, target)] = None
            else:
                drops.append(NO_TARGET)
    return [*found, *drops, *([EMPTY_INDEX] if drops and not found else [])]


def is_index(tag: str, attributes: Attributes) -> bool:
    """Return whether an element may hold an index, by its class."""
    if tag not in ("div", "table") or not attributes.get("class"):
        return False
    return not _LISTED.isdisjoint(_classes(attributes)) or _has_rows(attributes)


def _has_rows(attributes: Attributes) -> bool:
    """Return whether the class is that of an index in rows: of Texinfo, or of Sphinx's modules."""
    return any(map(_OF_ROWS.fullmatch, _classes(attributes)))


def _classes(attributes: Attributes) -> list[str]:
    return (attributes.get("class") or "").split()


def _indexes(root: LexborNode) -> Iterator[LexborNode]:
    """Give the elements that may hold an index and stand in no other such element."""
    outer: LexborNode | None = None
    for node, is_start in walk(root):
        if outer is None and is_start and is_index(node.tag or "-", node.attributes):
            outer = node
            yield node
        elif outer is not None and not is_start and node.mem_id == outer.mem_id:
            outer = None


def _rows(table: LexborNode) -> Iterator[tuple[str, str]]:
    """Give the term and the reference of each row."""
    for link in table.css('a[href*="#index-"], a[href*="#module-"]'):
        yield _folded(link.text()), link.attributes.get("href") or ""


def _list_entries(root: LexborNode) -> Iterator[tuple[str, str]]:
    """Give each term of nested lists, with the references of its links.

    In the ``<div class="index">`` of DocBook, links have the class ``indexterm``; others lead to
    letters or to other entries.
    """
    link_class = "indexterm" if root.tag == "div" else None
    entries: list[_Entry] = []
    level = 0
    for node, is_start in walk(root):
        tag = node.tag or "-"
        if tag in _LISTS:
            level += 1 if is_start else -1
        if tag in _ENTRIES if is_start else tag in _LISTS:
            deepest = level - 1 if is_start else level
            while entries and entries[-1].level > deepest:
                yield from _references(entries)
        if not is_start:
            continue
        if tag in _ENTRIES:
            entries.append(_Entry(level))
        elif entries and tag == "a":
            attributes = node.attributes
            if link_class is None or link_class in (attributes.get("class") or "").split():
                entries[-1].references.append(attributes.get("href") or "")
        elif entries and tag == "-text":
            references = len(entries[-1].references)
            if references < 2:
                part = entries[-1].linked if references else entries[-1].before
                part.append(node.text_content or "")
    while entries:
        yield from _references(entries)


def _references(entries: list[_Entry]) -> Iterator[tuple[str, str]]:
    """Take the last entry away and give its term with each of its references."""
    if entries[-1].references:
        labels = [entry.label for entry in entries]
        term = labels[0]
        for label in labels[1:]:
            own = label.startswith("(")
            term = f"{_BRACKET.sub('', term)} {label}" if own else f"{term}, {label}"
        for reference in entries[-1].references:
            yield term, reference
    entries.pop()


def _folded(text: str) -> str:
    return " ".join(text.split())
