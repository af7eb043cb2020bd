"""Collections of ir_datasets: their documents, KILT's articles, and collections of anchor texts.

A document becomes a page by its id, so that a collection of anchor texts such as
``irds:msmarco-document/anchor-text`` meets its documents in ``irds:msmarco-document``. Of anchor
texts only the target is known: each becomes a sentence that is linked as a whole, on a page that
is no document; all anchor texts of one document share it, so that it counts as one source.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ...errors import HarpError
from ..markup import LinkedText
from ..pages import Dropped, Item, Page, Section
from .base import READERS
from .json_lines import identifier, json_object, list_field, text_field, typed, well_formed
from .kilt import kilt_page
from .paragraphs import linked_whole
from .source import COLLECTION, MAX_RECORD, Source


class _Document(NamedTuple):
    """What a document of ir_datasets holds, as JSON."""

    name: str
    number: int
    data: bytes


@READERS.register("irds")
class IrDatasetsReader:
    """Reads the documents of a collection of ir_datasets."""

    def recognises(self, source: Source) -> bool:
        """Whether it is a collection, not a file."""
        return source.collection is not None

    def records(self, source: Source) -> Iterator[_Document | Dropped]:
        """Stream the documents, downloading the collection where ir_datasets can.

        Raises:
            HarpError: there is no such collection, it has no documents, or they cannot be had.
        """
        for number, document in enumerate(_documents(source), start=1):
            with well_formed(f"{source.name}, document {number}", "document with text"):
                data = json.dumps(_fields(document)).encode()
            if len(data) > MAX_RECORD:
                yield Dropped("document over 64 MiB")
            else:
                yield _Document(source.name, number, data)

    def parse(self, record: _Document) -> Iterable[Item]:
        """Give the document, or the page of its anchor texts.

        Raises:
            HarpError: the document holds no text where its fields promise one.
        """
        with well_formed(f"{record.name}, document {record.number}", "document with text"):
            fields = json_object(record.data)
            if "pieces" in fields:
                yield kilt_page(
                    text_field(fields, "title"),
                    list_field(fields, "pieces"),
                    list_field(fields, "anchors"),
                )
            elif "anchors" in fields:
                yield _anchor_texts(record.name, fields)
            else:
                yield _page(fields)


def _documents(source: Source) -> Iterator[Any]:
    name = source.collection
    if name is None:
        raise HarpError(f"{source.path} is a file: name a collection as {COLLECTION}NAME")
    try:
        import ir_datasets
    except ModuleNotFoundError as error:
        raise HarpError(f"{source.name} needs ir_datasets: pip install ir-datasets") from error
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
    except Exception as error:  # whatever a download or a format of another package raises
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise HarpError(
            f"{source.name} cannot be read ({reason}): fetch it as https://ir-datasets.com says"
        ) from error


def _fields(document: Any) -> dict[str, Any]:
    """What is read of a document: KILT's articles, anchor texts, and any other by its text.

    Raises:
        ValueError: it says nothing of its text, or holds what is no JSON.
    """
    title = getattr(document, "title", None) or ""
    if hasattr(document, "text_pieces"):
        anchors = [anchor._asdict() for anchor in document.anchors]
        return {"title": title, "pieces": list(document.text_pieces), "anchors": anchors}
    if hasattr(document, "anchors"):
        return {"doc_id": document.doc_id, "anchors": list(document.anchors)}
    if not hasattr(document, "default_text"):
        raise ValueError(f"{type(document).__name__} says nothing of its text")
    return {"doc_id": document.doc_id, "title": title, "text": document.default_text()}


def _anchor_texts(name: str, fields: dict[str, Any]) -> Page:
    doc_id = identifier(fields["doc_id"], "doc_id")
    written = (typed(anchor, str, "anchor") for anchor in list_field(fields, "anchors"))
    texts = [" ".join(text.split()) for text in written]
    body = linked_whole((text, doc_id) for text in texts if text)
    page = Page(f"{name}:{doc_id}", "", [Section(2, "", body)], whole=False, split=False)
    page.drops["empty anchor text"] += texts.count("")
    return page


def _page(fields: dict[str, Any]) -> Item:
    """A document as one section; its text is what ir_datasets takes for it, less the title."""
    title, text = text_field(fields, "title"), text_field(fields, "text")
    body = text.removeprefix(title).strip()
    if not body:
        return Dropped("page without text")
    sections = [Section(1, "", LinkedText(body, []))]
    return Page(identifier(fields["doc_id"], "doc_id"), title, sections)
