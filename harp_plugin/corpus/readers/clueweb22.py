"""ClueWeb22: its ``txt`` records are documents, its ``inlink`` and ``outlink`` records links.

The format as https://lemurproject.org/clueweb22/docspecs.php names its files and as code that
reads them shows it (Anchor-DR's ``anchor_filtering``, and ir_datasets' extension for ClueWeb22):

- ``txt``: ``{"URL", "URL-hash", "Language", "ClueWeb22-ID", "Clean-Text"}``;
- ``inlink``: ``{"url", "urlhash", "ClueWeb22-ID", "anchors": [...]}`` of the page linked to;
- ``outlink``: ``{"url", "urlhash", "ClueWeb22-ID", "outlinks": [...]}`` of the page linked from;
- an anchor: ``[url, urlhash, text, flag, language, ClueWeb22-ID]`` of the page at the other end,
  of which the last may be null or missing. A flag other than ``""`` and ``"0"`` says that it stands
  in a header or footer, not in which: such anchors are of the region ``header`` here.

Pages are named by their ClueWeb22-ID. Only the words of an anchor are known: each becomes a
sentence that is linked as a whole, on a page that is no document; there is one such page for each
two pages that are linked, with the registrable domain of the page that the anchor stands on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..markup import LinkedText
from ..pages import Dropped, Item, Page, Section
from ..urls import registrable_domain
from .base import READERS
from .json_lines import (
    Line,
    identifier,
    json_object,
    lines,
    list_field,
    text_field,
    typed,
    well_formed,
)
from .paragraphs import linked_whole
from .source import Source

_REGIONS = (None, "header")


@READERS.register("clueweb22")
class ClueWeb22Reader:
    """Reads ClueWeb22's JSON lines of text and of links."""

    def recognises(self, source: Source) -> bool:
        """Whether the first record is a JSON object with a ClueWeb22-ID."""
        first = source.head.lstrip().partition(b"\n")[0]
        return first.startswith(b"{") and b'"ClueWeb22-ID"' in first

    def records(self, source: Source) -> Iterator[Line | Dropped]:
        """Stream the lines; that of a page without links is blank."""
        return lines(source)

    def parse(self, record: Line) -> Iterable[Item]:
        """Give a document, or the anchors of a record page by page.

        Raises:
            HarpError: the line is no record of ClueWeb22.
        """
        with well_formed(record.place, "record of ClueWeb22"):
            fields = json_object(record.data)
            yield from [_document(fields)] if "Clean-Text" in fields else _linking_pages(fields)


def _document(fields: dict[str, Any]) -> Item:
    text = text_field(fields, "Clean-Text").strip()
    if not text:
        return Dropped("page without text")
    domain = registrable_domain(text_field(fields, "URL"))
    sections = [Section(1, "", LinkedText(text, []))]
    return Page(identifier(fields["ClueWeb22-ID"], "ClueWeb22-ID"), "", sections, domain=domain)


def _linking_pages(fields: dict[str, Any]) -> Iterator[Item]:
    """One page for each two that are linked: the words in its content, then those in its header."""
    outward = "outlinks" in fields
    url, key = text_field(fields, "url"), identifier(fields["ClueWeb22-ID"], "ClueWeb22-ID")
    found: dict[tuple[str, str], tuple[list[str], list[str]]] = {}
    for anchor in list_field(fields, "outlinks" if outward else "anchors"):
        other, _, text, flag, *rest = typed(anchor, list, "anchor")  # else ValueError
        other_key = rest[1] if len(rest) > 1 else None
        text = " ".join(typed(text, str, "anchor text").split())
        if not text:
            yield Dropped("empty anchor text")
        elif outward and other_key is None:
            yield Dropped("link out of ClueWeb22")
        elif key == other_key or url == other:
            yield Dropped("link to its own page")
        else:
            there = (typed(other, str, "url"), key)
            pair = (url, identifier(other_key, "ClueWeb22-ID")) if outward else there
            place = found.setdefault(pair, ([], []))
            place[flag not in ("", "0", 0, None)].append(text)
    for (source, target), places in found.items():
        yield _linking_page(source, target, places)


def _linking_page(source: str, target: str, places: tuple[list[str], list[str]]) -> Page:
    sections = [
        Section(2, "", linked_whole((text, target) for text in texts), region)
        for texts, region in zip(places, _REGIONS, strict=True)
        if texts
    ]
    domain = registrable_domain(source)
    return Page(f"{source} -> {target}", "", sections, whole=False, split=False, domain=domain)
