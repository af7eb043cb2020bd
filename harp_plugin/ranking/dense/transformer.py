"""The cosine of an encoder as a PyTerrier transformer."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt

from ...collections.dataset import Dataset
from ...errors import HarpError
from ...options import Count, checked
from ...text import passages
from ...work.artifact import Artifact
from ..base import ModelTransformer
from ..frames import rerank_frame, result_frame, with_cutoff
from ..texts import PassagesOf, column_texts
from ..tokens import distinct
from .documents import DocumentVectors
from .encoder import Encoder
from .index import DenseIndex
from .retriever import HarpRetriever
from .vectors import LibraryVectors

__all__ = ["DenseCosine"]


@dataclass(eq=False, repr=False, kw_only=True)
class DenseCosine(ModelTransformer):
    """Retrieve or rerank by the cosine of an encoder: ``DenseCosine(model, dataset="irds:x")``.

    A frame of queries is searched for: this needs a dataset and a folder for its vectors, which are
    made when they are first needed. The search is exact. A frame of results is reranked, by the
    vectors of the folder if one is named; otherwise texts come from the dataset, or stand in the
    frame. Equal scores are ordered by docno in a search, and keep
    the order of the first stage otherwise.

    Args:
        model: an encoder of sentence-transformers: a folder, a hub name, or ``package:NAME``. Its
            pooling and prompts are kept. Without ``index_dir`` also a ``SentenceTransformer`` in
            memory.
        dataset: where texts are looked up: an ir_datasets id such as ``irds:vaswani``, or a
            PyTerrier or ir_datasets dataset.
        index_dir: holds the vectors of all documents, one index for each collection, model and
            settings.
        text_field: as in `HarpReranker`.
        max_length: most tokens of a query or of a document, with special tokens; by default what
            the model's folder says. Longer documents are cut.
        max_passages: most passages of a document that have a vector: its first 80 words, and each
            next 72 behind the first 8. The best of them scores it. With 1, its beginning has one.
        num_results: results per query of a search.
        batch_size: texts that are encoded at once where they are padded.
        device: such as ``cpu`` or ``cuda:1``; by default CUDA where there is one.
        dtype: of the model: ``float32``, ``bfloat16`` or ``float16``.
        verbose: show a progress bar.

    Raises:
        HarpError: an argument makes no sense. A missing or unfit model or dataset is an error only
            when it is read.
    """

    index_dir: str | PathLike[str] | None = None
    max_length: int | None = None
    max_passages: int = 1
    num_results: int = 1000
    batch_size: int = 16
    device: str | None = None
    dtype: str = "float32"
    verbose: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("num_results", "batch_size", "max_passages"):
            checked(name, Count, getattr(self, name))
        checked("max_length", Count | None, self.max_length)
        if self.index_dir is not None and self.dataset is None:
            raise HarpError("index_dir needs a dataset: name the one whose documents are encoded")
        if not isinstance(self.model, str):
            is_fit = self.index_dir is None and hasattr(self.model, "encode_query")
            kind = "a SentenceTransformer, which needs no index_dir"
            self._check_in_memory(is_fit, kind, ("device", "dtype", "max_length"))
        else:
            _ = self.encoder
        _ = self.texts  # so that wrong arguments are refused here

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Search for queries, or rerank results.

        Args:
            inp: rows of ``qid`` and ``query``, which are searched for; or of ``docno`` as well and,
                without a dataset, the text fields, which are reranked.

        Returns:
            Results with ``score`` (float64, the cosine) and ``rank`` (from 0).

        Raises:
            HarpError: a query or a text is not a string, the dataset lacks a document, or there is
                nothing to search in.
        """
        if self.index_dir is None and len(inp) and "docno" not in inp:
            raise HarpError("a search for queries needs dataset and index_dir: name both")
        with pt.validate.any(inp, context=self) as v:
            v.result_frame(extra_columns=["query", *self.texts.columns], mode="rerank")
            if self.index_dir is not None:
                v.query_frame(extra_columns=["query"], mode="retrieve")
        if inp.empty:
            return result_frame(inp, []) if v.mode == "retrieve" else rerank_frame(inp, np.zeros(0))
        if self.index_dir is not None:
            retriever = self.retriever
            if v.mode == "retrieve" or retriever.has(inp["docno"]):
                return retriever.transform(inp)
        return rerank_frame(inp, self._score(inp))

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer | None:
        """Make one transformer of ``self % k``, where it searches."""
        return None if self.index_dir is None else with_cutoff(self, k)

    @property
    def encoder(self) -> Encoder:
        """The encoder of the present attributes; the same object until one is changed."""
        names = "device", "dtype", "batch_size", "max_length"
        options: dict[str, Any] = {name: getattr(self, name) for name in names}
        key = self.model, *options.values()
        return self._make_once("encoder", key, lambda: Encoder(self.model, **options))

    @property
    def index(self) -> DenseIndex:
        """The vectors of all documents, which may have to be made.

        Raises:
            HarpError: there is no ``index_dir``, or the dataset has no id.
        """
        if self.index_dir is None or not isinstance(self.texts.name, str):
            raise HarpError("a search needs index_dir and a dataset that has an id: name both")
        documents = PassagesOf(Dataset(self.texts.name, self.texts.fields), self.max_passages)
        return DenseIndex(documents, Path(self.index_dir), self.encoder, quiet=not self.verbose)

    @property
    def artifact(self) -> Artifact | None:
        """The folder of the index; None where there is no ``index_dir``."""
        return None if self.index_dir is None else self.index.artifact

    @property
    def retriever(self) -> HarpRetriever:
        """The search in the index, which is made first if it is missing."""
        key = self.texts, self.encoder, self.index_dir, self.max_passages, self.num_results
        return self._make_once("retriever", key, self._open_retriever)

    def _open_retriever(self) -> HarpRetriever:
        index = self.index
        index.make()
        return HarpRetriever(
            index.folder, model=self.model, num_results=self.num_results, device=self.device
        )

    def _score(self, frame: pd.DataFrame) -> np.ndarray:
        """(rows,) the score of each row, by texts that are encoded now."""
        query_of, queries = distinct(column_texts(frame, "query"))
        document_of, keys = self.texts.documents(frame)
        loaded = not isinstance(self.model, str)
        encoder = LibraryVectors(self.model, self.batch_size, True) if loaded else self.encoder
        parts = [passages(text, self.max_passages) for text in self.texts.read(keys, frame)]
        starts = np.cumsum([0, *map(len, parts[:-1])])
        vectors = encoder.documents([*chain.from_iterable(parts)])
        documents = DocumentVectors(vectors, starts, pd.RangeIndex(len(parts)))
        return documents.scores(encoder.queries(queries), query_of, document_of)

    def _comparison_key(self) -> tuple[Any, ...]:
        search = self.texts.name, self.texts.fields, str(self.index_dir), self.num_results
        reading = self.model, self.max_length, self.max_passages
        return *search, *reading, self.batch_size, self.device, self.dtype
