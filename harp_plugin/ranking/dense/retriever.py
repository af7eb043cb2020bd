"""A dense first stage over an index that `harp index` made."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyterrier as pt

from ...errors import HarpError
from ...options import Count, checked
from ...work.writing import whole
from ..base import LazyTransformer
from ..frames import check_queries, rerank_frame, result_frame, with_cutoff
from ..texts import column_texts
from ..tokens import distinct
from .documents import DECIMALS, DocumentVectors
from .encoder import Encoder
from .index import open_flex_index, read_index

__all__ = ["ALGORITHMS", "HarpRetriever"]

_EXACT = "exact"
ALGORITHMS = {
    "torch": "torch_retriever",
    "faiss": "faiss_flat_retriever",
    "hnsw": "faiss_hnsw_retriever",
    "ivf": "faiss_ivf_retriever",
}
"""Ways to search other than ``exact``: each is a method of pyterrier_dr's ``FlexIndex``."""
_FEW_VECTORS = 1000
"""With fewer, ``ivf`` searches all of its lists: one of them has too few of the results."""


@dataclass(eq=False, repr=False)
class HarpRetriever(LazyTransformer):
    """Search by an encoder: ``HarpRetriever("my-index") >> harp_rerank``.

    The index is one of pyterrier_dr (``FlexIndex("my-index")`` opens it too), and the encoder is
    the one that made it. A frame of queries is searched for; a frame of results is reranked.

    Args:
        index: the folder that `harp index` made, or that artifact of PyTerrier.
        algorithm: ``exact`` compares each query with all documents; ``torch`` does so on a GPU;
            ``faiss`` does so with FAISS. ``hnsw`` and ``ivf`` are faster and approximate (FAISS);
            what they derive from the vectors is kept in the folder.
        num_results: results for each query.
        model: the encoder, where its folder was moved.
        device: such as ``cpu`` or ``cuda:1``, for the queries; by default CUDA where there is one.
        options: further arguments of pyterrier_dr's method, such as ``ef_search`` of ``hnsw`` or
            ``n_probe`` of ``ivf``, which by default searches all of fewer than 1,000 vectors;
            ``exact`` has none.

    Raises:
        HarpError: an argument makes no sense. A missing index or model is an error only when it is
            read.
    """

    index: Any
    _: KW_ONLY
    algorithm: str = "exact"
    num_results: int = 1000
    model: str | PathLike[str] | None = None
    device: str | None = None
    options: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checked("algorithm", Literal[_EXACT, *ALGORITHMS], self.algorithm)
        checked("num_results", Count, self.num_results)
        if self.algorithm == _EXACT and self.options:
            raise HarpError("algorithm exact has no options: name another, or leave them out")
        self.index = fspath(getattr(self.index, "path", self.index))
        self.model = None if self.model is None else fspath(self.model)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Search for queries, or rerank results.

        Args:
            inp: rows of ``qid`` and ``query``, which are searched for; or of ``docno`` as well,
                which are reranked.

        Returns:
            Results with ``score`` and ``rank`` (from 0).

        Raises:
            HarpError: a query is not a string, a qid that is searched for is there twice, the index
                or the model cannot be read, FAISS is missing, or the index has no such document.
        """
        with pt.validate.any(inp, context=self) as v:
            v.result_frame(extra_columns=["query"], mode="rerank")
            v.query_frame(extra_columns=["query"], mode="retrieve")
        if inp.empty:
            return result_frame(inp, []) if v.mode == "retrieve" else rerank_frame(inp, np.zeros(0))
        if v.mode == "retrieve":
            check_queries(inp)
        with self._lock:
            encoder, retriever = self._open()
            query_of, queries = distinct(column_texts(inp, "query"))
            # A pipeline may search for queries and then rerank results of the same ones.
            key = self._comparison_key(), tuple(queries)
            vectors = self._make_once("queries", key, lambda: encoder.queries(queries))
            if v.mode == "rerank":
                numbers = self._numbers(inp["docno"])
                return rerank_frame(inp, self._documents.scores(vectors, query_of, numbers))
            if retriever is None:
                found = self._documents.search(vectors, self.num_results)
                return result_frame(inp, [found[query] for query in query_of])
            searched = inp.assign(query_vec=pd.Series(list(vectors[query_of]), inp.index))
            return self._of_best(_search(retriever, searched).drop(columns=["docid"]))

    def has(self, docnos: Iterable[str]) -> bool:
        """Return whether the index has all these documents."""
        with self._lock:
            return bool((self._documents.numbers(docnos) >= 0).all())

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer | None:
        """Make one transformer of ``self % k``."""
        return with_cutoff(self, k)

    @property
    def settings(self) -> dict[str, Any]:
        """What results depend on, apart from the queries.

        Raises:
            HarpError: the folder is not a finished index.
        """
        record = read_index(Path(self.index))
        made_from = record["settings"] | record["inputs"]
        return made_from | {"algorithm": self.algorithm, "options": self.options}

    def _numbers(self, docnos: Iterable[str]) -> np.ndarray:
        """(docnos,) the numbers of documents of the index."""
        numbers = self._documents.numbers(docnos)
        if (missing := numbers < 0).any():
            raise HarpError(f"{self.index} has no document {[*docnos][missing.argmax()]}")
        return numbers

    def _of_best(self, found: pd.DataFrame) -> pd.DataFrame:
        """Give each document of a search the score of its best passage."""
        if self._most_passages == 1:
            return _ordered(found)
        docnos = found["docno"].str.rpartition("%p")[0]
        best = _ordered(found.assign(docno=docnos)).drop_duplicates(["qid", "docno"])
        return _ordered(best.groupby("qid", sort=False).head(self.num_results))

    @property
    def _most_passages(self) -> int:
        """How many passages a document of the index has at most."""
        return self._make_once("most", self.index, lambda: self.settings.get("max_passages", 1))

    @property
    def _documents(self) -> DocumentVectors:
        """All documents, which are read where a search needs their names."""

        def read() -> DocumentVectors:
            most = self._most_passages
            return DocumentVectors.read(open_flex_index(Path(self.index)), most)

        return self._make_once("documents", self.index, read)

    def _open(self) -> tuple[Encoder, Any]:
        return self._make_once("opened", self._comparison_key(), self._load)

    def _load(self) -> tuple[Encoder, Any]:
        record = read_index(Path(self.index))
        options = {name: record["settings"][name] for name in Encoder.SETTINGS}
        encoder = Encoder(fspath(self.model or record["encoder"]), device=self.device, **options)
        if encoder.fingerprint != record["inputs"]["model"]:
            raise HarpError(
                f"{encoder.model} is not the encoder that made {self.index}, or was changed since: "
                "name that one, or make the index again"
            )
        return encoder, None if self.algorithm == _EXACT else self._retriever()

    def _retriever(self) -> pt.Transformer:
        """Return the search of pyterrier_dr, for passages where the index has them."""
        flex = open_flex_index(Path(self.index))
        method, options = getattr(flex, ALGORITHMS[self.algorithm]), self.options or {}
        if self.algorithm == "ivf" and len(flex) < _FEW_VECTORS:
            options = {"n_list": 1, "n_probe": len(flex), **options}
        try:
            if self.algorithm == "hnsw":
                retriever = _of_graph(lambda: method(**options, cache=False), Path(self.index))
            else:
                retriever = method(**options)
        except (ImportError, RuntimeError, TypeError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            raise HarpError(f"algorithm {self.algorithm}: {reason}") from error
        retriever.num_results = min(self.num_results * self._most_passages, len(flex))
        retriever.drop_query_vec = True
        return retriever

    def _comparison_key(self) -> tuple[Any, ...]:
        names = "index", "model", "algorithm", "num_results", "device"
        options = json.dumps(self.options, sort_keys=True, default=repr)
        return *(getattr(self, name) for name in names), options


def _of_graph(make: Callable[[], Any], folder: Path) -> Any:
    """Make a retriever that searches in a graph; one that was kept is read, and only once."""
    try:
        retriever = make()
    except RuntimeError:
        _remove_unreadable(folder)
        retriever = make()
    _keep_graph(retriever, folder)
    return retriever


def _remove_unreadable(folder: Path) -> None:
    """Remove graphs that pyterrier_dr wrote without their vectors: FAISS does not read them."""
    import faiss

    for path in folder.glob("hnsw_*.faiss"):
        try:
            faiss.read_index(str(path))
        except RuntimeError:
            path.unlink()


def _keep_graph(retriever: Any, folder: Path) -> None:
    """Keep the graph of a retriever, with its vectors, for the next time."""
    import faiss

    _, neighbours, construction = retriever.index_spec
    path = folder / f"hnsw_n-{neighbours}_ef-{construction}.faiss"
    if not path.exists():
        with whole(path) as temporary:
            faiss.write_index(retriever.faiss_index, str(temporary))


def _search(retriever: pt.Transformer, queries: pd.DataFrame) -> pd.DataFrame:
    """Search; pyterrier_dr gives arrays for numbers where a query has fewer than two results."""
    try:
        results = pd.DataFrame(retriever(queries))
    except ValueError:
        parts = (retriever(queries.iloc[[number]]) for number in range(len(queries)))
        results = pd.concat(map(pd.DataFrame, parts), ignore_index=True)
    if results["score"].dtype != object:
        return results
    columns = ["docno", "docid", "score", "rank"]
    values = {name: np.hstack(results[name].tolist()) for name in columns}
    rows = np.repeat(np.arange(len(results)), results["score"].map(np.size))
    return results.iloc[rows].reset_index(drop=True).assign(**values)


def _ordered(results: pd.DataFrame) -> pd.DataFrame:
    """Order equal scores by docno, and the queries as they were asked."""
    numbers = {qid: number for number, qid in enumerate(dict.fromkeys(results["qid"]))}
    score = results["score"].astype(np.float64).round(DECIMALS)
    result = results.assign(score=score, _query=results["qid"].map(numbers))
    order, is_ascending = ["_query", "score", "docno"], [True, False, True]
    result = result.sort_values(order, ascending=is_ascending, ignore_index=True)
    rank = result.groupby("qid", sort=False).cumcount()
    return result.drop(columns="_query").assign(rank=rank.astype(np.int64))
