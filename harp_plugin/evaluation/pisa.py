"""BM25 by PISA, over the documents of a dataset."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
import pyterrier as pt

from ..collections.dataset import Dataset
from ..ranking.bm25_index import PISA_LOG, Bm25Index
from ..ranking.pisa import muted, plain

__all__ = ["Bm25"]


class Bm25(pt.Transformer):
    """BM25 over an index of its own, as `harp_plugin.ranking.bm25_index.Bm25Index` makes it.

    An index is checked when it is opened; a damaged one is built anew.

    Args:
        collection: the dataset that is indexed, or its id, unless ``folder`` holds an index of it.
        folder: holds one index for each collection and setting.
        k1, b: parameters of BM25.
        depth: results per query.
        quiet: show no progress bar.

    Raises:
        HarpError: a docno holds white space, PISA fails, or there is something else in the place
            of the index.
    """

    schematic = {"label": "BM25", "help_url": None}  # noqa: RUF012

    def __init__(
        self,
        collection: Dataset | str,
        folder: str | PathLike[str],
        *,
        k1: float = 0.9,
        b: float = 0.4,
        depth: int = 1000,
        quiet: bool = True,
    ) -> None:
        self.collection = Dataset(collection) if isinstance(collection, str) else collection
        self.folder = Path(folder)
        self.k1 = k1
        self.b = b
        self.depth = depth
        self.quiet = quiet

    @property
    def settings(self) -> dict[str, Any]:
        """What the ranking depends on, apart from the collection."""
        return self._index.settings

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the packages that the ranking depends on."""
        return self._index.versions

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Retrieve for each query; queries come back as they were given."""
        pt.validate.query_frame(inp, extra_columns=["query"], context=self)
        if inp.empty:
            return inp.assign(docno="", score=0.0, rank=0)
        index = self._checked_index
        cleaned = inp.assign(query=inp["query"].map(plain), _query_as_given=inp["query"])
        with muted(index.path / PISA_LOG):
            results = index.retriever(self.depth).transform(cleaned)
        results["score"] = results["score"].astype(float)
        return results.drop(columns="query").rename(columns={"_query_as_given": "query"})

    @property
    def _index(self) -> Bm25Index:
        documents = _DocumentsOfDataset(self.collection)
        return Bm25Index(documents, self.folder, k1=self.k1, b=self.b, quiet=self.quiet)

    @cached_property
    def _checked_index(self) -> Bm25Index:
        self._index.make()
        return self._index


class _DocumentsOfDataset:
    """A dataset without its queries: an index does not depend on them."""

    def __init__(self, collection: Dataset) -> None:
        self._collection = collection
        self.name = collection.name

    @property
    def identity(self) -> dict[str, Any]:
        return self._collection.documents_identity

    @property
    def document_count(self) -> int | None:
        return self._collection.document_count

    def documents(self) -> Iterator[tuple[str, str]]:
        return self._collection.documents()
