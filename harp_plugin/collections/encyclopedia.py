"""The ir_datasets dataset ``harp-encyclopedia``: a small encyclopedia of information retrieval."""

# No `from __future__ import annotations`: PyTerrier's text loader takes the fields annotated `str`.

import hashlib
import json
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import ir_datasets
from ir_datasets.datasets.base import Dataset
from ir_datasets.formats import BaseDocs, TrecQrels, TsvQueries
from ir_datasets.indices.base import Docstore
from ir_datasets.util import LocalDownload

__all__ = ["NAME", "content_hash", "register"]

NAME = "harp-encyclopedia"
_GRADES = {
    0: "Not relevant",
    1: "Related: mentions the subject of the query",
    2: "Relevant: answers part of the query",
    3: "Highly relevant: the page on the subject of the query",
}


class EncyclopediaDoc(NamedTuple):
    """A page of the encyclopedia."""

    doc_id: str
    title: str
    text: str

    def default_text(self) -> str:
        """title and text"""
        return f"{self.title} {self.text}"


class _Pages(BaseDocs):
    """Reads the pages from the package. They are so few that a look-up needs no index on disk."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._pages: list[EncyclopediaDoc] = []

    def docs_iter(self) -> Iterator[EncyclopediaDoc]:
        return iter(self._load())

    def docs_cls(self) -> type[EncyclopediaDoc]:
        return EncyclopediaDoc

    def docs_store(self, field: str = "doc_id") -> "_PageStore":
        return _PageStore(self._load(), field)

    def docs_path(self, force: bool = True) -> Path:
        return self._path

    def docs_count(self) -> int:
        return len(self._load())

    def docs_namespace(self) -> str:
        return NAME

    def docs_lang(self) -> str:
        return "en"

    def _load(self) -> list[EncyclopediaDoc]:
        if not self._pages:
            with self._path.open(encoding="utf-8") as lines:
                self._pages = [EncyclopediaDoc(**json.loads(line)) for line in lines]
        return self._pages


class _PageStore(Docstore):
    """Looks pages up in memory."""

    def __init__(self, pages: list[EncyclopediaDoc], field: str) -> None:
        super().__init__(EncyclopediaDoc, field)
        self._by_id = {getattr(page, field): page for page in pages}

    def get_many_iter(self, doc_ids: Iterable[str]) -> Iterator[EncyclopediaDoc]:
        return (self._by_id[doc_id] for doc_id in doc_ids if doc_id in self._by_id)

    def built(self) -> bool:
        return True

    def count(self) -> int:
        return len(self._by_id)


def register() -> None:
    """Register the dataset, so that ``ir_datasets.load("harp-encyclopedia")`` gives it.

    A second call changes nothing.
    """
    if NAME in ir_datasets.registry:
        return
    queries = LocalDownload(_data("queries.tsv"), mkdir=False)
    qrels = LocalDownload(_data("qrels.txt"), mkdir=False)
    dataset = Dataset(
        _Pages(_data("docs.jsonl")),
        TsvQueries(queries, namespace=NAME, lang="en"),
        TrecQrels(qrels, _GRADES),
    )
    ir_datasets.registry.register(NAME, dataset)


def content_hash() -> str:
    """Hash the pages, which may change from one release to the next."""
    return hashlib.sha256(_data("docs.jsonl").read_bytes()).hexdigest()


def _data(name: str) -> Path:
    return Path(str(files("harp_plugin") / "data" / f"encyclopedia-{name}"))
