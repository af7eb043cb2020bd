"""Test collections in folders, such as `harp collect` writes: ids ``harp:FOLDER/test``."""

# No `from __future__ import annotations`: PyTerrier's text loader takes the fields annotated `str`.

from pathlib import Path
from typing import NamedTuple

from ir_datasets.datasets.base import Dataset
from ir_datasets.formats import TrecQrels, TsvQueries
from ir_datasets.util import LocalDownload

from ..errors import HarpError
from ..work.store_names import local_name
from .json_lines_documents import JsonLinesDocuments

__all__ = [
    "DOCUMENTS",
    "PREFIX",
    "QRELS",
    "QUERIES",
    "SPLITS",
    "CollectionDocument",
    "UnknownCollection",
    "dataset",
]

PREFIX = "harp:"
"""How ids of such collections start."""
DOCUMENTS = "documents.jsonl"
QUERIES = "queries.tsv"
QRELS = "qrels.txt"
SPLITS = ("train", "dev", "test")
_GRADES = {1: "Relevant: the page that the query was made for"}


class UnknownCollection(HarpError, KeyError):
    """There is no such collection; ir_datasets and PyTerrier look out for a KeyError."""

    __str__ = Exception.__str__


class CollectionDocument(NamedTuple):
    """A page of a test collection.

    Attributes:
        doc_id: the key of the page.
        title: its title.
        text: its whole text.
        anchor_text: the anchor texts of the links that lead to it, one a line.
    """

    doc_id: str
    title: str
    text: str
    anchor_text: str

    def default_text(self) -> str:
        """title and text"""
        return f"{self.title} {self.text}"


def dataset(id: str) -> Dataset:
    """Open a collection, whose files are read when they are needed.

    Args:
        id: ``harp:FOLDER`` for the documents, or ``harp:FOLDER/SPLIT`` with the queries and
            judgments of a split. FOLDER is a path, or a URL in an object store.

    Raises:
        UnknownCollection: there is no such folder, or it holds no collection or no such split.
    """
    name = id.removeprefix(PREFIX)
    path = Path(local_name(name)).expanduser()
    if (path / DOCUMENTS).is_file():
        return Dataset(_documents(path))
    folder = path.parent
    if path.name not in SPLITS or not (folder / DOCUMENTS).is_file():
        raise UnknownCollection(_advice(id, path))
    missing = [path / file for file in (QUERIES, QRELS) if not (path / file).is_file()]
    if missing:
        raise UnknownCollection(f"{missing[0]} is missing: run `harp collect` again")
    return Dataset(
        _documents(folder),
        TsvQueries(LocalDownload(path / QUERIES, mkdir=False), namespace=f"{PREFIX}{folder}"),
        TrecQrels(LocalDownload(path / QRELS, mkdir=False), _GRADES),
    )


def _documents(folder: Path) -> JsonLinesDocuments:
    return JsonLinesDocuments(folder / DOCUMENTS, CollectionDocument, f"{PREFIX}{folder}")


def _advice(id: str, path: Path) -> str:
    if path.name in SPLITS:
        path = path.parent
    if not path.is_dir():
        return f"no collection {id}: there is no folder {path}"
    if (path.parent / DOCUMENTS).is_file():
        return f"no collection {id}: the splits of {path.parent} are {', '.join(SPLITS)}"
    return f"no collection {id}: {path} has no {DOCUMENTS}, so `harp collect` did not write it"
