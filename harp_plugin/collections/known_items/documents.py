"""The documents of a test collection: the pages of a build, with ids that have no white space."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from ...corpus.tree import joined_sections
from ...sampling import stable_id
from ...text import title_anchors
from ...work.parquet import ShardFile, read_batches
from ...work.writing import whole
from ..datasets import DOCUMENTS, CollectionDocument
from ..documents import INDEX, make_index
from .queries import NamedPage
from .texts import near_form, title_forms

__all__ = ["DocumentIds", "named_pages", "page_keys", "write_documents"]

_ROWS_AT_ONCE = 256
_FILE = re.compile(r"(?<=\S)\.[a-zA-Z0-9]{2,8}$")


class DocumentIds:
    """Makes the id of a document of the key of its page: white space becomes ``_``.

    In the path of a file it becomes ``%20``, as in its address. Where that gives two pages one id,
    those of them whose key has white space get the id of the page, in hexadecimal digits, behind
    it.

    Args:
        keys: the keys of all pages.

    Attributes:
        lengthened: the number of ids that two pages would share.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        plain = np.array(array("q", (stable_id(_without_space(key)) for key in keys)))
        ids, counts = np.unique(plain, return_counts=True)
        self._double = set(ids[counts > 1].tolist())
        self.lengthened = len(self._double)

    def of(self, page: int, key: str) -> str:
        """Return the id of a page's document."""
        plain = _without_space(key)
        if plain == key or stable_id(plain) not in self._double:
            return plain
        return f"{plain}_{page:x}"


def _without_space(key: str) -> str:
    return re.sub(r"\s", lambda space: quote(space[0]) if _FILE.search(key) else "_", key)


def page_keys(files: Iterable[Path]) -> Iterator[str]:
    """Read the keys of all pages."""
    return (row["key"] for row in _rows(files, ["key"]))


def named_pages(
    files: Iterable[Path], pages: Container[int], ids: DocumentIds
) -> dict[int, NamedPage]:
    """Read what the audit compares queries with.

    Args:
        files: of the table of pages.
        pages: ids of those that queries name.
        ids: makes the ids of documents.
    """
    named = {}
    for row in _rows(files, ["id", "key", "title", "anchor_texts"]):
        if row["id"] in pages:
            named[row["id"]] = NamedPage(
                ids.of(row["id"], row["key"]),
                frozenset().union(*map(title_forms, title_anchors(row["title"]))),
                frozenset(near_form(anchor["text"]) for anchor in row["anchor_texts"] or ()),
            )
    return named


def write_documents(files: Iterable[Path], folder: Path, ids: DocumentIds) -> list[ShardFile]:
    """Write the pages as documents, sorted by key, and the index of their lines.

    Returns:
        The two files.
    """
    path, count = folder / DOCUMENTS, 0
    with whole(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
        for row in _rows(files):
            file.write(json.dumps(_document(row, ids)._asdict(), ensure_ascii=False) + "\n")
            count += 1
    index = path.with_suffix(INDEX)
    with whole(index) as temporary, temporary.open("wb") as file:
        np.save(file, make_index(path))
    return [ShardFile.from_path(path, count), ShardFile.from_path(index, count)]


def _rows(files: Iterable[Path], columns: list[str] | None = None) -> Iterator[dict[str, Any]]:
    for file in files:
        for batch in read_batches(file, columns, _ROWS_AT_ONCE):
            yield from batch.to_pylist()


def _document(row: dict[str, Any], ids: DocumentIds) -> CollectionDocument:
    sections = [(s["title"], s["text"], s["boilerplate"]) for s in row["sections"]]
    headings = joined_sections((title, "", boilerplate) for title, _, boilerplate in sections)
    anchors = row["anchor_texts"] or ()
    anchor_text = "\n".join(anchor["text"] for anchor in anchors for _ in range(anchor["count"]))
    doc_id, text = ids.of(row["id"], row["key"]), joined_sections(sections)
    return CollectionDocument(doc_id, row["title"], text, anchor_text, headings)
