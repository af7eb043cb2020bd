"""The cosine of an encoder as a PyTerrier transformer."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt

from ...collections.dataset import Dataset
from ...errors import HarpError
from ...limits import COUNT, check_limits
from ..frames import rerank_frame
from ..model_transformer import ModelTransformer
from ..pairs import distinct
from ..results import query_texts, result_frame, with_cutoff
from ..windows import DocumentWindows
from .encoder import Encoder, WindowVectors
from .index import DenseIndex, window_scores

__all__ = ["DenseCosine"]

_QUERIES_AT_ONCE = 64
_VECTOR_DTYPES = "float32", "float16"


class DenseCosine(ModelTransformer):
    """Retrieve or rerank by the cosine of an encoder: ``DenseCosine(model, dataset="irds:x")``.

    A frame of queries is searched for: this needs a dataset and a folder for its vectors, which are
    made when they are first needed. The search is exact. A frame of results is reranked, by the
    vectors of the folder if one is named; otherwise texts come from the dataset, or stand in the
    frame. Equal scores are ordered by docno in a search, and keep
    the order of the first stage otherwise.

    Args:
        model: an encoder of sentence-transformers: a folder, a hub name, or ``package:NAME``. Its
            pooling and prompts are kept.
        dataset: where texts are looked up: an ir_datasets id such as ``irds:vaswani``, or a
            PyTerrier or ir_datasets dataset.
        index_dir: holds the vectors of all documents, one index for each collection, model and
            settings.
        text_field: as in `HarpReranker`.
        passages: ``first``: the beginning of a document, as far as the model reads. ``max``,
            ``mean``, ``top2``: the best, the mean, or the mean of the two best of its windows.
        passage_length: tokens of a window; by default, and at most, what the model reads.
        passage_stride: tokens from one window's start to the next one's; by default half a window.
        vector_dtype: of the vectors on disk: ``float32``, or ``float16`` for half the space.
        max_length: most tokens of a query, or of a document or its window, with special tokens; by
            default what the model's folder says.
        num_results: results per query of a search.
        batch_size: texts that are encoded at once where they are padded.
        device: such as ``cpu`` or ``cuda:1``; by default CUDA where there is one.
        dtype: of the model: ``float32``, ``bfloat16`` or ``float16``.
        verbose: show a progress bar.

    Raises:
        HarpError: an argument makes no sense. A missing or unfit model or dataset is an error only
            when it is read.
    """

    schematic = {"label": "DenseCosine", "help_url": None}  # noqa: RUF012

    def __init__(
        self,
        model: str | PathLike[str],
        *,
        dataset: Any = None,
        index_dir: str | PathLike[str] | None = None,
        text_field: str | Sequence[str] | None = None,
        passages: str = "first",
        passage_length: int | None = None,
        passage_stride: int | None = None,
        vector_dtype: str = "float32",
        max_length: int | None = None,
        num_results: int = 1000,
        batch_size: int = 16,
        device: str | None = None,
        dtype: str = "float32",
        verbose: bool = False,
    ) -> None:
        super().__init__(model, text_field=text_field, dataset=dataset)
        self.index_dir = index_dir
        self.passages = passages
        self.passage_length = passage_length
        self.passage_stride = passage_stride
        self.vector_dtype = vector_dtype
        self.max_length = max_length
        self.num_results = num_results
        self.batch_size = batch_size
        self.device = device
        self.dtype = dtype
        self.verbose = verbose
        counts = "num_results", "batch_size", "max_length"
        check_limits(self, dict.fromkeys(counts, COUNT))
        if vector_dtype not in _VECTOR_DTYPES:
            raise HarpError(f"vector_dtype is {vector_dtype!r:.40}: choose float32 or float16")
        if index_dir is not None and dataset is None:
            raise HarpError("index_dir needs a dataset: name the one whose documents are encoded")
        _ = self.encoder, self.texts  # so that wrong arguments are refused here

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Search for queries, or rerank results.

        Args:
            inp: rows of ``qid`` and ``query``, which are searched for; or of ``docno`` as well and,
                without a dataset, the text fields, which are reranked.

        Returns:
            Results with ``score`` (float64, the cosine) and ``rank`` (from 0).

        Raises:
            HarpError: a query or a text is no string, or the dataset lacks a document.
        """
        with pt.validate.any(inp, context=self) as v:
            v.result_frame(extra_columns=["query", *self.texts.columns], mode="rerank")
            if self.index_dir is not None:
                v.query_frame(extra_columns=["query"], mode="retrieve")
        if v.mode == "retrieve":
            return result_frame(inp, self._search(query_texts(inp)))
        return rerank_frame(inp, self._score(inp))

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer | None:
        """Make one transformer of ``self % k``, where it searches."""
        return None if self.index_dir is None else with_cutoff(self, k)

    @property
    def encoder(self) -> Encoder:
        """The encoder of the present attributes; the same object until one is changed."""
        windows = DocumentWindows(self.passages, self.passage_length, self.passage_stride)
        names = "device", "dtype", "batch_size", "max_length"
        options: dict[str, Any] = {name: getattr(self, name) for name in names}
        key = fspath(self.model), windows, *options.values()
        return self._make_once("encoder", key, lambda: Encoder(self.model, windows, **options))

    @property
    def index(self) -> DenseIndex:
        """The vectors of all documents.

        Raises:
            HarpError: there is no ``index_dir``, or the dataset has no id.
        """
        if self.index_dir is None:
            raise HarpError("a search needs vectors of all documents: name dataset and index_dir")
        texts = self.texts
        key = texts, self.encoder, self.index_dir, self.vector_dtype
        return self._make_once("index", key, self._open_index)

    def _open_index(self) -> DenseIndex:
        assert self.index_dir is not None
        return DenseIndex(
            Dataset(self.texts.name, self.texts.fields),
            Path(self.index_dir),
            self.encoder,
            vector_dtype=self.vector_dtype,
            quiet=not self.verbose,
        )

    def _search(self, queries: list[str]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Give the docnos and the scores of the results for each query, best first."""
        results: list[tuple[np.ndarray, np.ndarray]] = []
        starts = range(0, len(queries), _QUERIES_AT_ONCE)
        for first in pt.tqdm(starts, desc="DenseCosine", disable=not self.verbose):
            vectors = self.encoder.queries(queries[first : first + _QUERIES_AT_ONCE])
            results += self.index.search(vectors, self.num_results)
        return results

    def _score(self, frame: pd.DataFrame) -> np.ndarray:
        """(rows,) the score of each row."""
        if frame.empty:
            return np.zeros(0)
        query_of, queries = distinct(query_texts(frame))
        document_of, keys = self.texts.documents(frame)
        query_vectors = self.encoder.queries(queries)
        vectors, starts = self._documents(keys, frame)
        ends = np.append(starts[1:], len(vectors))
        windows = [np.arange(starts[document], ends[document]) for document in document_of]
        sizes = np.array([len(of_row) for of_row in windows])
        rows = np.repeat(query_of, sizes)
        products = np.einsum("ij,ij->i", query_vectors[rows], vectors[np.concatenate(windows)])
        return window_scores(self.encoder.windows, products, np.cumsum(sizes) - sizes)

    def _documents(self, keys: list[str], frame: pd.DataFrame) -> WindowVectors:
        """Read the vectors of documents from the index, or encode their texts without one."""
        if self.index_dir is not None and all(key in self.index.numbers for key in keys):
            return self.index.of_documents([self.index.numbers[key] for key in keys])
        return self.encoder.documents(self.texts.read(keys, frame))

    def _comparison_key(self) -> tuple[Any, ...]:
        texts = self.texts
        index_dir = None if self.index_dir is None else fspath(self.index_dir)
        windows = self.encoder.windows
        names = "vector_dtype", "max_length", "num_results", "batch_size", "device", "dtype"
        options = (getattr(self, name) for name in names)
        return fspath(self.model), texts.name, texts.fields, index_dir, windows, *options
