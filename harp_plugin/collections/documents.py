"""Documents of a collection in one file of JSON lines, read in order or looked up by id."""

# No `from __future__ import annotations`: PyTerrier's text loader takes the fields annotated `str`.

import json
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from ir_datasets.formats import JsonlDocs
from ir_datasets.indices.base import Docstore
from ir_datasets.util import LocalDownload

from ..errors import HarpError
from ..sampling import stable_id
from ..work.records import file_hash, file_state

__all__ = ["INDEX", "JsonLinesDocuments", "make_index"]

INDEX = ".index.npy"
"""How the name of the index of a file of documents ends."""


class JsonLinesDocuments(JsonlDocs):
    """Documents of ir_datasets, one JSON object a line.

    A document is looked up by the offset of its line. The offsets are read from the index next to
    the file (``documents.index.npy`` for ``documents.jsonl``), or by reading the file once.
    Everything is read from the file as it is now, so that a file that was written again is never
    mixed with an earlier one.

    Args:
        path: the file.
        document_class: a named tuple with a ``doc_id``; its fields are the keys of an object.
        namespace: what ir_datasets calls the collection.
        language: the code of the documents' language, None if it is not known.
    """

    def __init__(
        self, path: Path, document_class: Any, namespace: str, language: str | None = None
    ) -> None:
        file = LocalDownload(path, mkdir=False)
        super().__init__(file, document_class, namespace=namespace, lang=language)
        self.path = path

    def docs_iter(self) -> "_Documents":
        """Read the documents in order; a slice gives a part of them."""
        return _Documents(self, self.lines())

    def docs_store(self) -> "_DocumentStore":
        """Look documents up by their id."""
        return _DocumentStore(self)

    def docs_count(self) -> int:
        """Count the documents."""
        return self.index().shape[1]

    def content_hash(self) -> str:
        """Compute the SHA-256 of the file; it is read again only where it has changed since."""
        return _content_hash(self.path, file_state(self.path))

    def index(self) -> np.ndarray:
        """Return the hashes and offsets of the documents, as `make_index` gives them."""
        return _read_index(self.path, file_state(self.path))[:, :-1]

    def lines(self) -> Iterator[Any]:
        """Read the documents in order."""
        with self.path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                yield self._document(line, f"line {number}")

    def at(self, offsets: Iterable[int]) -> Iterator[Any]:
        """Read the documents whose lines start at these offsets, in bytes."""
        with self.path.open("rb") as file:
            for offset in offsets:
                file.seek(offset)
                yield self._document(file.readline(), f"byte {offset}")

    def _document(self, line: bytes, where: str) -> Any:
        try:
            document = self.docs_cls()(**json.loads(line))
            if not all(isinstance(value, str) for value in document):
                raise TypeError("each must be a text")
            return document
        except (ValueError, TypeError) as error:
            fields = ", ".join(self.docs_cls()._fields)
            raise HarpError(
                f"{self.path}, {where}: not a document with {fields} ({error}): make the file again"
            ) from None


def make_index(path: Path) -> np.ndarray:
    """Find where the line of each document starts.

    Args:
        path: a file of documents, one JSON object a line.

    Returns:
        int64 of shape (2, documents + 1): the hash of each document's id, ascending, and the
        offset of its line in bytes. The last column holds the size of the file twice, which shows
        whether an index is of the file next to it.

    Raises:
        HarpError: a line is not a JSON object with a ``doc_id``, or an id is a duplicate.
    """
    hashes, offsets, size = [], [], 0
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                hashes.append(stable_id(json.loads(line)["doc_id"]))
            except (ValueError, TypeError, KeyError):
                raise HarpError(
                    f"{path}, line {number}: not a JSON object with a doc_id: make the file again"
                ) from None
            offsets.append(size)
            size += len(line)
    table = np.array([hashes, offsets], dtype=np.int64)
    table = table[:, np.argsort(table[0], kind="stable")]
    if (twice := np.flatnonzero(table[0, 1:] == table[0, :-1])).size:
        with path.open("rb") as file:
            file.seek(int(table[1, twice[0]]))
            doc_id = json.loads(file.readline())["doc_id"]
        raise HarpError(f"{path} has two documents {doc_id!r}: give each an id of its own")
    return np.concatenate([table, np.full((2, 1), size)], axis=1)


@lru_cache(maxsize=64)
def _content_hash(path: Path, _state: tuple[int, ...]) -> str:
    return file_hash(path)


@lru_cache(maxsize=4)
def _read_index(path: Path, state: tuple[int, ...]) -> np.ndarray:
    stored = path.with_suffix(INDEX)
    if stored.is_file():
        index = np.load(stored, mmap_mode="r", allow_pickle=False)
        if index.ndim == 2 and index[0, -1] == state[0]:
            return np.asarray(index)
    return make_index(path)


class _Documents:
    """The documents in order, as ir_datasets gives them: an iterator that can be sliced."""

    def __init__(self, documents: JsonLinesDocuments, chosen: Iterator[Any]) -> None:
        self._documents = documents
        self._chosen = chosen

    def __iter__(self) -> "_Documents":
        return self

    def __next__(self) -> Any:
        return next(self._chosen)

    def __getitem__(self, key: slice | int) -> Any:
        """Give the documents of a slice of all, or the one at an index."""
        offsets = np.sort(self._documents.index()[1])[key]
        chosen = _Documents(self._documents, self._documents.at(offsets.ravel().tolist()))
        return chosen if isinstance(key, slice) else next(chosen)


class _DocumentStore(Docstore):
    """Looks documents up; a look-up opens the file again: processes and threads can share it."""

    def __init__(self, documents: JsonLinesDocuments) -> None:
        super().__init__(documents.docs_cls())
        self._documents = documents

    def get_many_iter(self, doc_ids: Iterable[str]) -> Iterator[Any]:
        wanted, (hashes, offsets) = set(doc_ids), self._documents.index()
        if not wanted or not len(hashes):
            return
        keys = np.fromiter(map(stable_id, wanted), np.int64, len(wanted))
        rows = np.minimum(np.searchsorted(hashes, keys), len(hashes) - 1)
        rows = rows[hashes[rows] == keys]
        for document in self._documents.at(np.sort(offsets[rows]).tolist()):
            if document.doc_id not in wanted:
                raise HarpError(
                    f"{self._documents.path} does not fit the index next to it: make both again, "
                    "or remove the index"
                )
            yield document
