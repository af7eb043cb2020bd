"""The corpus format of the HARP authors' released code: one sentence a line, as JSON.

A line is ``{"sentence", "tokenized_sentence", "anchors": [[{"text", "pos", "passage"}]]}``. ``pos``
counts white-space tokens (only its start is reliable) and ``passage`` is the text of the linked
page. The format has no title for a linked page; its key is made from its text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from ...sampling import stable_id
from ..markup import Link, LinkedText
from ..pages import Item, Page, Section
from .json_lines import JsonLinesReader, Record, checked, list_field, text_field

__all__ = ["HarpAnchorsReader"]

_MAX_SPACE = 256
_MAX_TEXT = 4096


class HarpAnchorsReader(JsonLinesReader):
    """Reads the JSON lines of the HARP authors."""

    field_names = (b'"sentence"', b'"anchors"')
    record_name = "sentence with its anchors"

    def items(self, record: Record) -> Iterable[Item]:
        """Give the linked pages, then the sentence as a page without a lead.

        Such a page can never be a document.
        """
        return _pages(f"{record.name}:{record.number}", record.fields())


def _pages(source_key: str, fields: dict[str, Any]) -> Iterator[Page]:
    sentence = re.sub("[\n\r]", " ", text_field(fields, "sentence"))
    tokens = list_field(fields, "tokenized_sentence")
    ends = _token_ends(sentence, tokens)
    drops: Counter[str] = Counter()
    links: list[Link] = []
    for anchor in _anchors(fields):
        passage = text_field(anchor, "passage")
        first, *_ = list_field(anchor, "pos")
        span = _span(sentence, tokens, ends, text_field(anchor, "text"), checked(first, int, "pos"))
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
    for anchors in list_field(fields, "anchors"):
        for anchor in checked(anchors, list, "an anchor's list"):
            yield checked(anchor, dict, "anchor")


def _page(key: str, body: LinkedText, level: int = 1) -> Page:
    return Page(key, "", [Section(level, "", body)], whole=False, split=False)


def _token_ends(sentence: str, tokens: list[str]) -> list[int]:
    """Return, for each white-space token, the offset where the token before it ends."""
    ends = [0]
    for token in tokens:
        size = len(checked(token, str, "token"))
        start = sentence.find(token, ends[-1], ends[-1] + size + _MAX_SPACE)
        ends.append(max(ends[-1], start + size))
    return ends[:-1]


def _span(
    sentence: str, tokens: list[str], ends: list[int], text: str, first: int
) -> tuple[int, int] | None:
    """Return the character offsets of an anchor.

    Args:
        sentence: the sentence.
        tokens: its white-space tokens.
        ends: the result of `_token_ends`.
        text: the anchor text.
        first: the number of the token in which the anchor starts.

    Returns:
        The offsets; None where the anchor does not start in this token.
    """
    if not 0 < len(text) <= _MAX_TEXT or not 0 <= first < len(tokens):
        return None
    last = ends[first] + min(len(tokens[first]), _MAX_TEXT)
    match = re.compile(re.escape(text), re.I).search(sentence, ends[first], last + len(text))
    return match.span() if match and match.start() <= last else None
