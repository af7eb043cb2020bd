"""Measures of a ranking from the labels of its documents, for many rankings of the same queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ir_measures
import numpy as np
import pandas as pd

from ..errors import HarpError
from .candidates import Candidates

__all__ = ["MeasuredRankings", "parse_measure"]


def parse_measure(name: Any) -> Any:
    """Read a measure as ir_measures writes it, such as ``RR@10``; a measure is given back.

    Raises:
        HarpError: the measure is unknown, or no installed package computes it.
    """
    if not isinstance(name, str):
        return name
    try:
        measure = ir_measures.parse_measure(name)
    except (NameError, ValueError):
        raise HarpError(
            f"unknown measure {name!r}: write it as nDCG@10, AP or P(rel=2)@5"
        ) from None
    if not ir_measures.DefaultPipeline.supports(measure):
        raise HarpError(f"no installed package computes measure {name}: choose another")
    return measure


class MeasuredRankings:
    """Measures rankings of the same candidates.

    The measures RR, nDCG, AP, P, R and Success are computed here, on all queries at once; others by
    ir_measures, which takes some tenths of a second for each ranking of 50,000 documents.

    Args:
        candidates: the documents.
        qrels: columns ``qid``, ``docno`` and ``label`` (or ``relevance``).
        measure: of ir_measures.

    Attributes:
        qids: the judged queries, in ascending order. One without candidates has the value 0.

    Raises:
        HarpError: the judgments lack a column or are empty.
    """

    def __init__(self, candidates: Candidates, qrels: pd.DataFrame, measure: Any) -> None:
        self._measure = measure
        self._qrels = _judgments(qrels)
        self._candidates = candidates
        self.qids: list[str] = sorted(self._qrels["query_id"].unique())
        self._judged = _Judged(candidates, self._qrels, self.qids)
        self._compute = _MEASURES.get(measure.NAME) if _is_plain(measure) else None

    def values(self, scores: np.ndarray) -> np.ndarray:
        """Measure the ranking by these scores; equal scores keep the order of the candidates.

        Args:
            scores: (documents,) one for each candidate.

        Returns:
            (queries,) the value of each judged query.
        """
        if self._compute is None:
            return self._by_ir_measures(scores)
        depth = self._measure.params.get("cutoff")
        return self._compute(self._judged, self._judged.ranked_labels(scores, depth), self._measure)

    def _by_ir_measures(self, scores: np.ndarray) -> np.ndarray:
        order = np.lexsort((-scores, self._candidates.query_of))
        query_of = self._candidates.query_of[order]
        run = pd.DataFrame(
            {
                "query_id": self._candidates.qids[query_of],
                "doc_id": self._candidates.docnos[order],
                "score": -np.arange(len(order), dtype=np.float64),
            }
        )
        found = ir_measures.iter_calc([self._measure], self._qrels, run)
        values = {value.query_id: value.value for value in found}
        return np.array([values.get(qid, 0.0) for qid in self.qids])


class _Judged:
    """The labels of candidates, in arrays with one row for each judged query.

    Attributes:
        all_labels: (queries, most judgments) the labels of all judged documents, best first.
    """

    def __init__(self, candidates: Candidates, qrels: pd.DataFrame, qids: list[str]) -> None:
        row_of = pd.Series(np.arange(len(qids)), index=qids)
        rows = row_of.reindex(candidates.qids).fillna(-1).to_numpy(dtype=np.int64)
        self._there = rows[candidates.query_of] >= 0
        self._rows = rows[candidates.query_of][self._there]
        sizes = np.diff(candidates.starts, append=len(candidates.docnos))
        places = np.arange(len(candidates.docnos)) - np.repeat(candidates.starts, sizes)
        self._places = places[self._there]
        self._shape = len(qids), int(sizes.max(initial=1))
        found = pd.MultiIndex.from_arrays(
            [candidates.qids[candidates.query_of], candidates.docnos], names=["query_id", "doc_id"]
        )
        labels = qrels.set_index(["query_id", "doc_id"])["relevance"].reindex(found).fillna(0)
        self._labels = self._padded(labels.to_numpy(dtype=np.float64), 0.0)
        ordered = qrels.sort_values("relevance", ascending=False, kind="stable")
        place = ordered.groupby("query_id").cumcount().to_numpy()
        self.all_labels = np.zeros((len(qids), int(place.max(initial=0)) + 1))
        self.all_labels[row_of[ordered["query_id"]].to_numpy(), place] = ordered["relevance"]

    def ranked_labels(self, scores: np.ndarray, depth: int | None) -> np.ndarray:
        """(queries, depth at most) the labels in the order of the scores; 0 behind the last one."""
        order = np.argsort(-self._padded(scores, -np.inf), axis=1, kind="stable")
        return np.take_along_axis(self._labels, order[:, :depth], axis=1)

    def _padded(self, values: np.ndarray, padding: float) -> np.ndarray:
        padded = np.full(self._shape, padding)
        padded[self._rows, self._places] = values[self._there]
        return padded


def _judgments(qrels: pd.DataFrame) -> pd.DataFrame:
    names = {"qid": "query_id", "docno": "doc_id", "label": "relevance"}
    qrels = qrels.rename(columns=names)
    for old, new in names.items():
        if new not in qrels.columns:
            raise HarpError(f"the judgments have no column {old}: give qid, docno and label")
    if qrels.empty:
        raise HarpError("there are no judgments to learn from: give those of some queries")
    qrels = qrels[[*names.values()]].astype({"relevance": np.int64})
    return qrels.sort_values("relevance").drop_duplicates(["query_id", "doc_id"], keep="last")


def _is_plain(measure: Any) -> bool:
    return set(measure.params) <= {"rel", "cutoff"} and measure.params.get("rel", 1) > 0


def _relevant(labels: np.ndarray, measure: Any) -> np.ndarray:
    return labels >= measure.params.get("rel", 1)


def _reciprocal_rank(judged: _Judged, labels: np.ndarray, measure: Any) -> np.ndarray:
    relevant = _relevant(labels, measure)
    return relevant.any(axis=1) / (1 + relevant.argmax(axis=1))


def _ndcg(judged: _Judged, labels: np.ndarray, measure: Any) -> np.ndarray:
    best = _dcg(judged.all_labels[:, : measure.params.get("cutoff")])
    return _dcg(labels) / np.where(best > 0, best, 1)


def _dcg(labels: np.ndarray) -> np.ndarray:
    discounts = np.log2(np.arange(labels.shape[1]) + 2)
    return np.asarray(np.sum(np.maximum(labels, 0) / discounts, axis=1))


def _average_precision(judged: _Judged, labels: np.ndarray, measure: Any) -> np.ndarray:
    relevant = _relevant(labels, measure)
    precision = relevant.cumsum(axis=1) / (np.arange(labels.shape[1]) + 1)
    return (precision * relevant).sum(axis=1) / _relevant_count(judged, measure)


def _precision(judged: _Judged, labels: np.ndarray, measure: Any) -> np.ndarray:
    return _relevant(labels, measure).sum(axis=1) / measure.params["cutoff"]


def _recall(judged: _Judged, labels: np.ndarray, measure: Any) -> np.ndarray:
    return _relevant(labels, measure).sum(axis=1) / _relevant_count(judged, measure)


def _success(judged: _Judged, labels: np.ndarray, measure: Any) -> np.ndarray:
    return np.asarray(_relevant(labels, measure).any(axis=1), dtype=np.float64)


def _relevant_count(judged: _Judged, measure: Any) -> np.ndarray:
    """(queries,) how many documents are relevant; 1 where none is, to divide by."""
    return np.maximum(_relevant(judged.all_labels, measure).sum(axis=1), 1)


_MEASURES: dict[str, Callable[[_Judged, np.ndarray, Any], np.ndarray]] = {
    "RR": _reciprocal_rank,
    "nDCG": _ndcg,
    "AP": _average_precision,
    "P": _precision,
    "R": _recall,
    "Success": _success,
}
