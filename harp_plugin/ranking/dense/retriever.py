"""A dense first stage over an index that `harp index` made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyterrier as pt

from ...errors import HarpError
from ...options import Count, checked
from ..base import LazyTransformer
from ..frames import rerank_frame, result_frame, with_cutoff
from ..texts import PassagesOf, column_texts
from ..tokens import distinct
from .encoder import Encoder
from .index import best_scores, open_flex_index, ordered, read_index, search_results

__all__ = ["ALGORITHMS", "HarpRetriever"]

ALGORITHMS = {
    "exact": "np_retriever",
    "torch": "torch_retriever",
    "faiss": "faiss_flat_retriever",
    "hnsw": "faiss_hnsw_retriever",
    "ivf": "faiss_ivf_retriever",
}
"""Ways to search, each with the method of pyterrier_dr's ``FlexIndex`` that does it."""
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
        options: further arguments of pyterrier_dr's method, such as ``ef_search`` of
            ``hnsw`` or ``n_probe`` of ``ivf``, which by default searches all of fewer than 1,000
            vectors.

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
        checked("algorithm", Literal[tuple(ALGORITHMS)], self.algorithm)
        checked("num_results", Count, self.num_results)
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
            HarpError: a query is not a string, the index or the model cannot be read, FAISS is
                missing, or the index has no such document.
        """
        with pt.validate.any(inp, context=self) as v:
            v.result_frame(extra_columns=["query"], mode="rerank")
            v.query_frame(extra_columns=["query"], mode="retrieve")
        if inp.empty:
            return result_frame(inp, []) if v.mode == "retrieve" else rerank_frame(inp, np.zeros(0))
        with self._lock:
            flex, encoder, retriever = self._open()
            query_of, queries = distinct(column_texts(inp, "query"))
            # A pipeline may search for queries and then rerank results of the same ones.
            key = self._comparison_key(), tuple(queries)
            vectors = self._make_once("queries", key, lambda: encoder.queries(queries))[query_of]
            if v.mode == "retrieve":
                searched = inp.assign(query_vec=pd.Series(list(vectors), inp.index))
                found = search_results(retriever, searched).drop(columns=["docid"])
                return ordered(found) if self._most_passages == 1 else self._of_best(found)
            return rerank_frame(inp, self._scores(flex, vectors, inp["docno"].to_numpy()))

    def has(self, docnos: Iterable[str]) -> bool:
        """Return whether the index has all these documents."""
        with self._lock:
            names = self._open()[0].docnos()
            return bool((self._rows(names, list(docnos))[:, 0] >= 0).all())

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

    def _scores(self, flex: Any, queries: np.ndarray, docnos: np.ndarray) -> np.ndarray:
        """(rows,) the score of each row, by the vectors of its query and its document."""
        names, vectors, _ = flex.payload()
        document_of, distinct_docnos = distinct(docnos.tolist())
        rows = self._rows(names, distinct_docnos)
        if (missing := rows[:, 0] < 0).any():
            raise HarpError(f"{self.index} has no document {distinct_docnos[missing.argmax()]}")
        return best_scores(queries, vectors, rows[document_of])

    def _of_best(self, found: pd.DataFrame) -> pd.DataFrame:
        """Give each document of a search the score of its best passage."""
        docnos = found["docno"].str.rpartition("%p")[0]
        best = ordered(found.assign(docno=docnos)).drop_duplicates(["qid", "docno"])
        return ordered(best.groupby("qid", sort=False).head(self.num_results))

    def _rows(self, names: Any, docnos: Sequence[str]) -> np.ndarray:
        """(docnos, passages) the rows of documents in an index, -1 where it has none."""
        most = self._most_passages
        ids = [name.encode() for docno in docnos for name in PassagesOf.ids(docno, most)]
        return np.reshape(names.inv[np.array(ids, dtype="S")], (len(docnos), most))

    @property
    def _most_passages(self) -> int:
        """How many passages a document of the index has at most."""
        return self._make_once("most", self.index, lambda: self.settings.get("max_passages", 1))

    def _open(self) -> tuple[Any, Encoder, Any]:
        return self._make_once("opened", self._comparison_key(), self._load)

    def _load(self) -> tuple[Any, Encoder, Any]:
        record = read_index(Path(self.index))
        options = {name: record["settings"][name] for name in Encoder.SETTINGS}
        encoder = Encoder(fspath(self.model or record["encoder"]), device=self.device, **options)
        if encoder.fingerprint != record["inputs"]["model"]:
            raise HarpError(
                f"{encoder.model} is not the encoder that made {self.index}, or was changed since: "
                "name that one, or make the index again"
            )
        flex = open_flex_index(Path(self.index))
        return flex, encoder, self._retriever(flex)

    def _retriever(self, flex: Any) -> pt.Transformer:
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
        return *(getattr(self, name) for name in names), tuple(sorted((self.options or {}).items()))


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
        temporary = path.with_suffix(".new")
        faiss.write_index(retriever.faiss_index, str(temporary))
        temporary.replace(path)
