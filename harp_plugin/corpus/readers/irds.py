"""Collections of ir_datasets: their documents, KILT's articles, and collections of anchor texts.

A document becomes a page whose key is the id of the document. A collection of anchor texts, such as
``irds:msmarco-document/anchor-text``, can therefore be built together with its documents, such as
``irds:msmarco-document``. Of an anchor text, the collection holds only the target. Each anchor
text becomes a sentence that is a link as a whole. All anchor texts of one document stand on one
page, which is not a document and counts as one source of links.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from ...errors import HarpError, folded
from ..markup import LinkedText, linked_lines
from ..pages import NO_TEXT, Dropped, Item, Page, Section
from .json_lines import (
    JsonLinesReader,
    Record,
    checked,
    list_field,
    malformed_record,
    nonempty_text,
    text_field,
)
from .kilt import kilt_page
from .source import COLLECTION, MAX_RECORD, Source

__all__ = ["IrDatasetsReader"]


class IrDatasetsReader(JsonLinesReader):
    """Reads the documents of a collection of ir_datasets."""

    record_name = "document with text"

    def recognizes(self, source: Source) -> bool:
        """Return whether the source is a collection and not a file."""
        return source.collection is not None

    def records(self, source: Source) -> Iterator[Record | Dropped]:
        """Stream the documents, and download the collection first where ir_datasets can.

        Raises:
            HarpError: there is no such collection, or its documents are missing or cannot be read.
        """
        for number, document in enumerate(_documents(source), start=1):
            record = Record(source.name, number, b"", is_document=True)
            with malformed_record(record.place, self.record_name):
                data = json.dumps(_fields(document)).encode()
            if len(data) > MAX_RECORD:
                yield Dropped("document over 64 MiB")
            else:
                yield record._replace(data=data)

    def items(self, record: Record) -> Iterable[Item]:
        """Give the document, or the page of its anchor texts."""
        fields = record.fields()
        if "pieces" in fields:
            title, pieces = text_field(fields, "title"), list_field(fields, "pieces")
            return [kilt_page(title, pieces, list_field(fields, "anchors"))]
        if "anchors" in fields:
            return [_anchor_texts(record.name, fields)]
        return [_page(fields)]


def _documents(source: Source) -> Iterator[Any]:
    name = source.collection
    if name is None:
        raise HarpError(f"{source.path} is a file: name a collection as {COLLECTION}NAME")
    import ir_datasets

    try:
        dataset = ir_datasets.load(name)
    except KeyError as error:
        close = difflib.get_close_matches(name, list(ir_datasets.registry), n=1)
        hint = f"did you mean {COLLECTION}{close[0]}? " if close else ""
        raise HarpError(
            f"ir_datasets has no collection {name!r}: {hint}see https://ir-datasets.com"
        ) from error
    if not dataset.has_docs():
        raise HarpError(f"{source.name} has no documents: name the collection that it belongs to")
    try:
        yield from dataset.docs_iter()
    except Exception as error:  # a download, or the format of another package, may raise any error
        reason = folded(f"{type(error).__name__}: {error}")
        raise HarpError(
            f"{source.name} cannot be read ({reason}): fetch it as https://ir-datasets.com says"
        ) from error


def _fields(document: Any) -> dict[str, Any]:
    """Return the fields that are read: of KILT's articles, of anchor texts, or of any document.

    Raises:
        ValueError: the document has no text, or holds values that JSON cannot write.
    """
    title = getattr(document, "title", None) or ""
    if hasattr(document, "text_pieces"):
        anchors = [anchor._asdict() for anchor in document.anchors]
        return {"title": title, "pieces": list(document.text_pieces), "anchors": anchors}
    if hasattr(document, "anchors"):
        return {"doc_id": document.doc_id, "anchors": list(document.anchors)}
    if not hasattr(document, "default_text"):
        raise ValueError(f"{type(document).__name__} has no text")
    return {"doc_id": document.doc_id, "title": title, "text": document.default_text()}


def _anchor_texts(name: str, fields: dict[str, Any]) -> Page:
    doc_id = nonempty_text(fields["doc_id"], "doc_id")
    anchors = (checked(anchor, str, "anchor") for anchor in list_field(fields, "anchors"))
    texts = [" ".join(text.split()) for text in anchors]
    body = linked_lines((text, doc_id) for text in texts if text)
    page = Page(f"{name}:{doc_id}", "", [Section(2, "", body)], whole=False, split=False)
    page.drops["empty anchor text"] += texts.count("")
    return page


def _page(fields: dict[str, Any]) -> Item:
    """Make a page of one section; its text is the default text of ir_datasets without the title."""
    title, text = text_field(fields, "title"), text_field(fields, "text")
    body = text.removeprefix(title).strip()
    if not body:
        return NO_TEXT
    sections = [Section(1, "", LinkedText(body, []))]
    return Page(nonempty_text(fields["doc_id"], "doc_id"), title, sections)
