"""The corpus format of the HARP authors' released code: one sentence a line, as JSON.

A line is ``{"sentence", "tokenized_sentence", "anchors": [[{"text", "pos", "passage"}]]}``. ``pos``
counts white-space tokens (only its start can be relied on) and ``passage`` is the linked page's
text. A linked page has no title here; its key is made from its text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from ...sampling import stable_id
from ..markup import Link, LinkedText
from ..pages import Dropped, Item, Page, Section
from .base import READERS
from .json_lines import Line, json_object, lines, list_field, text_field, typed, well_formed
from .source import Source

_MOST_SPACE = 256
_MOST_TEXT = 4096


@READERS.register("harp-anchors")
class HarpAnchorsReader:
    """Reads the HARP authors' JSON lines."""

    def recognises(self, source: Source) -> bool:
        """Whether the first line is a JSON object with a sentence and its anchors."""
        first = source.head.lstrip().partition(b"\n")[0]
        return first.startswith(b"{") and b'"sentence"' in first and b'"anchors"' in first

    def records(self, source: Source) -> Iterator[Line | Dropped]:
        """Stream the lines."""
        return lines(source)

    def parse(self, record: Line) -> Iterable[Item]:
        """Give the linked pages, then the sentence as a page without a lead, so no document.

        Raises:
            HarpError: the line is no JSON object with a sentence and its anchors.
        """
        with well_formed(record.place, "sentence with its anchors"):
            yield from _pages(f"{record.name}:{record.number}", json_object(record.data))


def _pages(source_key: str, fields: dict[str, Any]) -> Iterator[Page]:
    sentence = re.sub("[\n\r]", " ", text_field(fields, "sentence"))
    tokens = list_field(fields, "tokenized_sentence")
    ends = _token_ends(sentence, tokens)
    drops: Counter[str] = Counter()
    links: list[Link] = []
    for anchor in _anchors(fields):
        passage = text_field(anchor, "passage")
        first, *_ = list_field(anchor, "pos")
        span = _span(sentence, tokens, ends, text_field(anchor, "text"), typed(first, int, "pos"))
        if span is None:
            drops["anchor text not at its place"] += 1
            continue
        key = f"passage:{stable_id(passage):016x}"
        links.append(Link(*span, sentence[slice(*span)], key))
        yield _page(key, LinkedText(passage, []))
    source = _page(source_key, LinkedText(sentence, links), level=2)
    source.drops = drops
    yield source


def _anchors(fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for nested in list_field(fields, "anchors"):
        for anchor in typed(nested, list, "an anchor's list"):
            yield typed(anchor, dict, "anchor")


def _page(key: str, body: LinkedText, level: int = 1) -> Page:
    return Page(key, "", [Section(level, "", body)], whole=False, split=False)


def _token_ends(sentence: str, tokens: list[str]) -> list[int]:
    """Where the text before each white-space token ends."""
    ends = [0]
    for token in tokens:
        size = len(typed(token, str, "token"))
        found = sentence.find(token, ends[-1], ends[-1] + size + _MOST_SPACE)
        ends.append(max(ends[-1], found + size))
    return ends[:-1]


def _span(
    sentence: str, tokens: list[str], ends: list[int], text: str, first: int
) -> tuple[int, int] | None:
    """Character offsets of an anchor that starts within its first white-space token."""
    if not 0 < len(text) <= _MOST_TEXT or not 0 <= first < len(tokens):
        return None
    last = ends[first] + min(len(tokens[first]), _MOST_TEXT)
    found = re.compile(re.escape(text), re.I).search(sentence, ends[first], last + len(text))
    return found.span() if found and found.start() <= last else None
