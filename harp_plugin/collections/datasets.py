"""Datasets of ir_datasets: a small encyclopedia, and the test collections of `harp collect`."""

# No `from __future__ import annotations`: PyTerrier's text loader takes the fields annotated `str`.

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from ir_datasets.datasets.base import Dataset
from ir_datasets.formats import TrecQrels, TsvQueries
from ir_datasets.util import LocalDownload

from ..errors import HarpError
from ..work.urls import local_path
from .documents import JsonLinesDocuments

__all__ = [
    "DOCUMENTS",
    "ENCYCLOPEDIA",
    "PREFIX",
    "QRELS",
    "QUERIES",
    "SPLITS",
    "CollectionDocument",
    "UnknownCollection",
    "encyclopedia",
    "folder_collection",
    "with_queries",
]

ENCYCLOPEDIA = "harp-encyclopedia"
PREFIX = "harp:"
"""How the ids of test collections in folders start."""
DOCUMENTS = "documents.jsonl"
QUERIES = "queries.tsv"
QRELS = "qrels.txt"
SPLITS = ("train", "dev", "test")
_GRADES = {
    0: "Not relevant",
    1: "Related: mentions the subject of the query",
    2: "Relevant: answers part of the query",
    3: "Highly relevant: the page on the subject of the query",
}
_COLLECTION_GRADES = {1: "Relevant: the page that the query was made for"}


class UnknownCollection(HarpError, KeyError):
    """There is no such collection; ir_datasets and PyTerrier look out for a KeyError."""

    __str__ = Exception.__str__


class EncyclopediaDoc(NamedTuple):
    """A page of the encyclopedia."""

    doc_id: str
    title: str
    text: str

    def default_text(self) -> str:
        """title and text"""
        return f"{self.title} {self.text}"


class CollectionDocument(NamedTuple):
    """A page of a test collection.

    Attributes:
        doc_id: the key of the page.
        title: its title.
        text: its whole text.
        anchor_text: the anchor texts of the links that lead to it, one a line.
        headings: the headings of its sections, one a line, which stand in the text too.
    """

    doc_id: str
    title: str
    text: str
    anchor_text: str
    headings: str = ""

    def default_text(self) -> str:
        """title and text"""
        return f"{self.title} {self.text}"


def encyclopedia() -> Dataset:
    """Return the encyclopedia of information retrieval, whose files are in the package."""
    folder = Path(str(files("harp_plugin") / "data"))
    documents = folder / "encyclopedia-docs.jsonl"
    return Dataset(
        JsonLinesDocuments(documents, EncyclopediaDoc, ENCYCLOPEDIA, "en"),
        _queries(folder / "encyclopedia-queries.tsv", ENCYCLOPEDIA, "en"),
        _qrels(folder / "encyclopedia-qrels.txt", _GRADES),
    )


def folder_collection(id: str) -> Dataset:
    """Open a test collection, whose files are read when they are needed.

    Args:
        id: ``harp:FOLDER`` for the documents, or ``harp:FOLDER/SPLIT`` with the queries and
            judgments of a split. FOLDER is a path or a URL.

    Raises:
        UnknownCollection: there is no such folder, or it holds no collection or no such split.
    """
    path = Path(_local(id.removeprefix(PREFIX))).expanduser()
    if (path / DOCUMENTS).is_file():
        return Dataset(_documents(path))
    folder = path.parent
    if path.name not in SPLITS or not (folder / DOCUMENTS).is_file():
        raise UnknownCollection(_advice(id, path))
    if missing := [path / file for file in (QUERIES, QRELS) if not (path / file).is_file()]:
        raise UnknownCollection(f"{missing[0]} is missing: run `harp collect` again")
    return Dataset(
        _documents(folder),
        _queries(path / QUERIES, f"{PREFIX}{folder}"),
        _qrels(path / QRELS, _COLLECTION_GRADES),
    )


def with_queries(id: str, queries: Path, qrels: Path) -> Dataset:
    """Join the documents of a test collection with other queries and judgments.

    Args:
        id: of the collection, as `folder_collection` takes it.
        queries: a file with an id, a tab and a query a line.
        qrels: a file of TREC's form.
    """
    documents = folder_collection(id).docs_handler()
    name = documents.docs_namespace()
    joined = Dataset(documents, _queries(queries, name), _qrels(qrels, {}))
    joined.dataset_id = lambda: f"{id} with the queries of {queries}"
    return joined


def _local(name: str) -> str:
    """Return the path of a collection, or of a split of one, which may have a URL."""
    folder, _, split = name.rpartition("/")
    return f"{local_path(folder)}/{split}" if split in SPLITS else local_path(name)


@cache
def _documents(folder: Path) -> JsonLinesDocuments:
    return JsonLinesDocuments(folder / DOCUMENTS, CollectionDocument, f"{PREFIX}{folder}")


def _queries(path: Path, namespace: str, language: str | None = None) -> TsvQueries:
    lines = _Lines(path, r"([^\t]+)\t[^\t]*", "an id, a tab and a query")
    return TsvQueries(lines, namespace=namespace, lang=language)


def _qrels(path: Path, grades: dict[int, str]) -> TrecQrels:
    form, said = r"\s*(?:\S+\s+){3}[+-]?\d+\s*", "a query, 0, a document and a whole number"
    return TrecQrels(_Lines(path, form, said), grades)


class _Lines(LocalDownload):
    """A text file with lines of one form; a byte order mark and empty lines are left out.

    What the form has in brackets is an id, which no other line may have.
    """

    def __init__(self, path: Path, form: str, said: str) -> None:
        super().__init__(path, mkdir=False)
        self._form, self._said = re.compile(form), said

    @contextmanager
    def stream(self) -> Iterator[BytesIO]:
        """Open the lines.

        Raises:
            HarpError: one has another form, or the id of another line.
        """
        text, first = self.path().read_text("utf-8-sig"), dict[str, int]()
        lines = {n: line for n, line in enumerate(text.split("\n"), 1) if line.strip()}
        for number, line in lines.items():
            if not (match := self._form.fullmatch(line)):
                raise HarpError(f"{self.path()}, line {number}: {line!r:.60} is not {self._said}")
            for id in match.groups():
                if first.setdefault(id, number) != number:
                    raise HarpError(
                        f"{self.path()}, line {number}: {id!r:.60} is the id of line {first[id]} "
                        "too: give each query its own"
                    )
        yield BytesIO("".join(f"{line}\n" for line in lines.values()).encode())


def _advice(id: str, path: Path) -> str:
    if path.name in SPLITS:
        path = path.parent
    if not path.is_dir():
        return f"no collection {id}: there is no folder {path}"
    if (path.parent / DOCUMENTS).is_file():
        return f"no collection {id}: the splits of {path.parent} are {', '.join(SPLITS)}"
    return f"no collection {id}: {path} has no {DOCUMENTS}, so `harp collect` did not write it"
