"""A dense first stage over an index that `harp index` made."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt

from ...errors import HarpError
from ...limits import COUNT, check_limits
from ..compared_transformer import ComparedTransformer
from ..frames import rerank_frame
from ..pairs import distinct
from ..results import query_texts, result_frame, with_cutoff
from .encoder import Encoder
from .index import open_flex_index, ordered, read_index, row_scores

__all__ = ["ALGORITHMS", "HarpRetriever"]

ALGORITHMS = {
    "exact": "np_retriever",
    "torch": "torch_retriever",
    "faiss": "faiss_flat_retriever",
    "hnsw": "faiss_hnsw_retriever",
    "ivf": "faiss_ivf_retriever",
}
"""Ways to search, each with the method of pyterrier_dr's ``FlexIndex`` that does it."""


class HarpRetriever(ComparedTransformer):
    """Search by an encoder: ``HarpRetriever("my-index") >> harp_rerank``.

    The index is one of pyterrier_dr (``FlexIndex("my-index")`` opens it too), and the encoder is
    the one that made it. A frame of queries is searched for; a frame of results is reranked.

    Args:
        index: the folder that `harp index` made.
        algorithm: ``exact`` compares each query with all documents; ``torch`` does so on a GPU;
            ``faiss`` does so with FAISS. ``hnsw`` and ``ivf`` are faster and approximate (FAISS);
            what they derive from the vectors is kept in the folder.
        num_results: results for each query.
        model: the encoder, where its folder was moved.
        device: such as ``cpu`` or ``cuda:1``, for the queries; by default CUDA where there is one.
        options: further arguments of pyterrier_dr's method, such as ``ef_search`` of
            ``hnsw`` or ``n_probe`` of ``ivf``.

    Raises:
        HarpError: an argument makes no sense. A missing index or model is an error only when it is
            read.
    """

    schematic = {"label": "HarpRetriever", "help_url": None}  # noqa: RUF012

    def __init__(
        self,
        index: str | PathLike[str],
        *,
        algorithm: str = "exact",
        num_results: int = 1000,
        model: str | PathLike[str] | None = None,
        device: str | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        if algorithm not in ALGORITHMS:
            raise HarpError(
                f"algorithm is {algorithm!r:.40}: choose one of {', '.join(ALGORITHMS)}"
            )
        check_limits({"num_results": num_results}, {"num_results": COUNT})
        self.index = index
        self.algorithm = algorithm
        self.num_results = num_results
        self.model = model
        self.device = device
        self.options = options
        self._opened: tuple[Any, Encoder, Any] | None = None
        self._lock = threading.RLock()

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Search for queries, or rerank results.

        Args:
            inp: rows of ``qid`` and ``query``, which are searched for; or of ``docno`` as well,
                which are reranked.

        Returns:
            Results with ``score`` and ``rank`` (from 0).

        Raises:
            HarpError: a query is no string, the index or the model cannot be read, FAISS is
                missing, or the index has no such document.
        """
        with pt.validate.any(inp, context=self) as v:
            v.result_frame(extra_columns=["query"], mode="rerank")
            v.query_frame(extra_columns=["query"], mode="retrieve")
        if inp.empty:
            return result_frame(inp, []) if v.mode == "retrieve" else rerank_frame(inp, np.zeros(0))
        with self._lock:
            flex, encoder, retriever = self._open()
            query_of, queries = distinct(query_texts(inp))
            vectors = encoder.queries(queries)[query_of]
            if v.mode == "retrieve":
                results = retriever(inp.assign(query_vec=pd.Series(list(vectors), inp.index)))
                return ordered(results.drop(columns=["query_vec", "docid"]))
            return rerank_frame(inp, self._scores(flex, vectors, inp["docno"].to_numpy()))

    def has(self, docnos: Iterable[str]) -> bool:
        """Return whether the index has all these documents."""
        with self._lock:
            names = self._open()[0].docnos()
        return bool((np.asarray(names.inv[np.array(docnos, dtype=object)]) >= 0).all())

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer | None:
        """Make one transformer of ``self % k``."""
        return with_cutoff(self, k)

    @property
    def settings(self) -> dict[str, Any]:
        """What results depend on, apart from the queries.

        Raises:
            HarpError: the folder is no finished index.
        """
        record = read_index(Path(self.index))
        made_from = record["settings"] | record["inputs"]
        return made_from | {"algorithm": self.algorithm, "options": self.options}

    def _scores(self, flex: Any, queries: np.ndarray, docnos: np.ndarray) -> np.ndarray:
        """(rows,) the score of each row, by the vectors of its query and its document."""
        names, vectors, _ = flex.payload()
        numbers = np.asarray(names.inv[docnos])
        if (numbers < 0).any():
            raise HarpError(f"{fspath(self.index)} has no document {docnos[numbers < 0][0]}")
        return row_scores(queries, vectors[numbers])

    def _open(self) -> tuple[Any, Encoder, Any]:
        if self._opened is None:
            record = read_index(Path(self.index))
            options = {name: record["settings"][name] for name in Encoder.SETTINGS}
            encoder = Encoder(self.model or record["encoder"], device=self.device, **options)
            if encoder.fingerprint != record["inputs"]["model"]:
                raise HarpError(
                    f"{encoder.model} is not the encoder that made {fspath(self.index)}, or was "
                    "changed since: name that one, or make the index again"
                )
            flex = open_flex_index(Path(self.index))
            self._opened = flex, encoder, self._retriever(flex)
        return self._opened

    def _retriever(self, flex: Any) -> pt.Transformer:
        method = getattr(flex, ALGORITHMS[self.algorithm])
        try:
            retriever = method(**(self.options or {}))
        except (ImportError, TypeError, ValueError) as error:
            raise HarpError(f"algorithm {self.algorithm}: {error}") from error
        retriever.num_results = min(self.num_results, len(flex))
        return retriever

    def _comparison_key(self) -> tuple[Any, ...]:
        options = sorted((self.options or {}).items())
        names = "algorithm", "num_results", "device"
        model = None if self.model is None else fspath(self.model)
        return fspath(self.index), model, *(getattr(self, n) for n in names), tuple(options)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({**state, "_lock": threading.RLock()})
