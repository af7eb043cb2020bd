"""The corpus format of the HARP authors' released code: one sentence a line, as JSON.

A line is ``{"sentence", "tokenized_sentence", "anchors": [[{"text", "pos", "passage"}]]}``. ``pos``
counts white-space tokens (only its start can be relied on) and ``passage`` is the linked page's
text. A linked page has no title here; its key is made from its text.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from ...errors import HarpError
from ...sampling import stable_id
from ..markup import Link, LinkedText
from ..pages import Dropped, Item, Page, Section
from .base import READERS
from .source import Source


@READERS.register("harp-anchors")
class HarpAnchorsReader:
    """Reads the HARP authors' JSON lines."""

    def recognises(self, source: Source) -> bool:
        """Whether the first line is a JSON object with a sentence and its anchors."""
        first = source.head.lstrip().partition(b"\n")[0]
        return first.startswith(b"{") and b'"sentence"' in first and b'"anchors"' in first

    def records(self, source: Source) -> Iterator[tuple[str, int, bytes] | Dropped]:
        """Stream the lines."""
        for line in source.lines():
            yield line if isinstance(line, Dropped) else (source.name, *line)

    def parse(self, record: tuple[str, int, bytes]) -> Iterable[Item]:
        """Give the linked pages, then the sentence as a page without a lead, so no document.

        Raises:
            HarpError: the line is no JSON object with a sentence and its anchors.
        """
        name, number, line = record
        try:
            yield from self._pages(name, number, json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise HarpError(
                f"{name}, line {number}: no sentence with its anchors as JSON ({error!r})"
            ) from error

    def _pages(self, name: str, number: int, fields: dict[str, Any]) -> Iterator[Page]:
        sentence = fields["sentence"]
        drops: Counter[str] = Counter()
        links: list[Link] = []
        for anchor in (anchor for nested in fields["anchors"] for anchor in nested):
            span = _span(sentence, fields["tokenized_sentence"], anchor)
            if span is None:
                drops["anchor text not at its place"] += 1
                continue
            key = f"passage:{stable_id(anchor['passage']):016x}"
            links.append(Link(*span, sentence[slice(*span)], key))
            yield _page(key, LinkedText(anchor["passage"], []))
        body = LinkedText(sentence.replace("\n", " "), links)
        source = _page(f"{name}:{number}", body, level=2)
        source.drops = drops
        yield source


def _page(key: str, body: LinkedText, level: int = 1) -> Page:
    return Page(key, "", [Section(level, "", body)], whole=False, split=False)


def _span(sentence: str, tokens: list[str], anchor: dict[str, Any]) -> tuple[int, int] | None:
    """Character offsets of an anchor that starts within its first white-space token."""
    first = anchor["pos"][0]
    text = anchor["text"]
    if not text or first >= len(tokens):
        return None
    position = 0
    for token in tokens[:first]:
        position = max(position, sentence.find(token, position) + len(token))
    start = sentence.lower().find(text.lower(), position)
    if start < 0 or start - position > len(tokens[first]):
        return None
    return start, start + len(text)
