"""The corpus format of the HARP authors' released code: one sentence a line, as JSON.

A line is ``{"sentence", "tokenized_sentence", "anchors": [[{"text", "pos", "passage"}]]}``. ``pos``
counts white-space tokens (only its start can be relied on) and ``passage`` is the linked page's
text. A linked page has no title here; its key is made from its text.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from lzma import LZMAError
from typing import IO, Any

from ...errors import HarpError
from ...sampling import stable_id
from ..markup import Link, LinkedText
from ..pages import Item, Page, Section
from .base import READERS


@READERS.register("harp-anchors")
class HarpAnchorsReader:
    """Reads the HARP authors' JSON lines."""

    def recognises(self, head: bytes) -> bool:
        """Whether the first line is a JSON object with a sentence and its anchors."""
        first = head.lstrip().partition(b"\n")[0]
        return first.startswith(b"{") and b'"sentence"' in first and b'"anchors"' in first

    def records(self, file: IO[bytes], name: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
        """Stream the lines.

        Raises:
            HarpError: a line is no JSON object with a sentence and anchors, or has broken UTF-8.
        """
        number = 0
        try:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    record = json.loads(line)
                    record["sentence"], record["tokenized_sentence"], record["anchors"]
                    yield name, number, record
        except (ValueError, KeyError, TypeError) as error:
            raise _malformed(name, number or 1, error) from error
        except (EOFError, OSError, zlib.error, LZMAError) as error:
            raise HarpError(f"{name} cannot be read ({error}): fetch it again") from error

    def parse(self, record: tuple[str, int, dict[str, Any]]) -> Iterable[Item]:
        """Give the linked pages, then the sentence as a page without a lead, so no document."""
        name, number, fields = record
        try:
            yield from self._pages(name, number, fields)
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise _malformed(name, number, error) from error

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


def _malformed(name: str, number: int, error: Exception) -> HarpError:
    return HarpError(f"{name}, line {number}: no sentence with its anchors as JSON ({error!r})")


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
