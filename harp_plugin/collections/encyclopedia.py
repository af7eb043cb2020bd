"""The ir_datasets dataset ``harp-encyclopedia``: a small encyclopedia of information retrieval."""

# No `from __future__ import annotations`: PyTerrier's text loader takes the fields annotated `str`.

from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from ir_datasets.datasets.base import Dataset
from ir_datasets.formats import TrecQrels, TsvQueries
from ir_datasets.util import LocalDownload

from .json_lines_documents import JsonLinesDocuments

__all__ = ["NAME", "dataset"]

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


def dataset() -> Dataset:
    """Return the dataset, whose files are in the package."""
    queries = LocalDownload(_data("queries.tsv"), mkdir=False)
    qrels = LocalDownload(_data("qrels.txt"), mkdir=False)
    return Dataset(
        JsonLinesDocuments(_data("docs.jsonl"), EncyclopediaDoc, NAME, "en"),
        TsvQueries(queries, namespace=NAME, lang="en"),
        TrecQrels(qrels, _GRADES),
    )


def _data(name: str) -> Path:
    return Path(str(files("harp_plugin") / "data" / f"encyclopedia-{name}"))
