"""ClueWeb22: its ``txt`` records are documents, its ``inlink`` and ``outlink`` records are links.

The format follows https://lemurproject.org/clueweb22/docspecs.php for the names of files, and code
that reads them for the fields (Anchor-DR's ``anchor_filtering``, and the extension of ir_datasets
for ClueWeb22):

- ``txt``: ``{"URL", "URL-hash", "Language", "ClueWeb22-ID", "Clean-Text"}``;
- ``inlink``: ``{"url", "urlhash", "ClueWeb22-ID", "anchors": [...]}`` for a page that is linked to;
- ``outlink``: ``{"url", "urlhash", "ClueWeb22-ID", "outlinks": [...]}`` for a page that links;
- an anchor: ``[url, urlhash, text, flag, language, ClueWeb22-ID]`` of the page at the other end of
  the link. The last field may be null or missing. A flag other than ``""`` and ``"0"`` says that
  the anchor stands in a header or a footer, without saying in which: here, its region is
  ``header``.

The key of a page is its ClueWeb22-ID. The records hold only the words of an anchor. Each anchor
becomes a sentence that is a link as a whole. For each two linked pages, these sentences stand on a
page of their own, which is not a document and has the registrable domain of the page that links.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..markup import LinkedText, linked_lines
from ..pages import NO_TEXT, Dropped, Item, Page, Section
from ..urls import registrable_domain
from .json_lines import JsonLinesReader, Record, checked, list_field, nonempty_text, text_field

__all__ = ["ClueWeb22Reader"]


class ClueWeb22Reader(JsonLinesReader):
    """Reads the JSON lines of ClueWeb22's texts and links.

    The line of a page without links is blank.
    """

    field_names = (b'"ClueWeb22-ID"',)
    record_name = "record of ClueWeb22"

    def items(self, record: Record) -> Iterable[Item]:
        """Give a document, or a page for each two pages that are linked."""
        fields = record.fields()
        return [_document(fields)] if "Clean-Text" in fields else _linking_pages(fields)


def _document(fields: dict[str, Any]) -> Item:
    text = text_field(fields, "Clean-Text").strip()
    if not text:
        return NO_TEXT
    domain = registrable_domain(text_field(fields, "URL"))
    sections = [Section(1, "", LinkedText(text, []))]
    return Page(nonempty_text(fields["ClueWeb22-ID"], "ClueWeb22-ID"), "", sections, domain=domain)


def _linking_pages(fields: dict[str, Any]) -> Iterator[Item]:
    """Give a page for each two linked pages: the anchors of the content, then of the header."""
    is_outlinks = "outlinks" in fields
    url, key = text_field(fields, "url"), nonempty_text(fields["ClueWeb22-ID"], "ClueWeb22-ID")
    anchors: dict[tuple[str, str], dict[str | None, list[str]]] = {}
    for anchor in list_field(fields, "outlinks" if is_outlinks else "anchors"):
        other_url, _, text, flag, *rest = checked(anchor, list, "anchor")  # else ValueError
        other_key = rest[1] if len(rest) > 1 else None
        text = " ".join(checked(text, str, "anchor text").split())
        if not text:
            yield Dropped("empty anchor text")
        elif is_outlinks and other_key is None:
            yield Dropped("link out of ClueWeb22")
        elif key == other_key or url == other_url:
            yield Dropped("link to its own page")
        else:
            inlink = (checked(other_url, str, "url"), key)
            pair = (url, nonempty_text(other_key, "ClueWeb22-ID")) if is_outlinks else inlink
            region = None if flag in ("", "0", 0, None) else "header"
            anchors.setdefault(pair, {None: [], "header": []})[region].append(text)
    for (url, target), texts_by_region in anchors.items():
        sections = [
            Section(2, "", linked_lines((text, target) for text in texts), region)
            for region, texts in texts_by_region.items()
            if texts
        ]
        domain = registrable_domain(url)
        yield Page(f"{url} -> {target}", "", sections, whole=False, split=False, domain=domain)
