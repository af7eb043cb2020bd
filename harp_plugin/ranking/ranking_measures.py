"""Measures of many rankings of the same queries, by ir_measures."""

from __future__ import annotations

from typing import Any

import ir_measures
import numpy as np
import pandas as pd

from ..collections.judged_queries import check_judgments
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
        is_computed = ir_measures.DefaultPipeline.supports(measure)
    except (NameError, ValueError):
        raise HarpError(
            f"unknown measure {name!r}: write it as nDCG@10, AP or P(rel=2)@5"
        ) from None
    except AssertionError as error:  # such as `invalid param cutoff=<object object>`
        reason = str(error).partition("=")[0]
        raise HarpError(f"measure {name!r}: {reason}: write it as P@5 or P(rel=2)@5") from None
    if measure.params.get("cutoff", 1) < 1:  # it would end the process
        raise HarpError(f"measure {name!r} measures no document: write it as nDCG@10")
    if not is_computed:
        raise HarpError(f"no installed package computes measure {name}: choose another")
    return measure


class MeasuredRankings:
    """Measures rankings of the same candidates.

    Args:
        candidates: the documents.
        qrels: columns ``qid``, ``docno`` and ``label`` (or ``relevance``).
        measure: of ir_measures; of one with a cutoff, only that many documents are measured.

    Attributes:
        qids: the judged queries, in ascending order. One without candidates has the value 0.

    Raises:
        HarpError: the judgments lack a column or are empty.
    """

    def __init__(self, candidates: Candidates, qrels: pd.DataFrame, measure: Any) -> None:
        judgments = _judgments(qrels)
        self.qids: list[str] = sorted(judgments["query_id"].unique())
        self._evaluator = ir_measures.evaluator([measure], judgments)
        self._depth = measure.params.get("cutoff")
        self._candidates = candidates
        self._query_ids = candidates.qids[candidates.query_of].astype(str)
        self._docnos = candidates.docnos.astype(str)

    def values(self, scores: np.ndarray) -> np.ndarray:
        """Measure the ranking by these scores; equal scores keep the order of the candidates.

        Args:
            scores: (documents,) one for each candidate.

        Returns:
            (queries,) the value of each judged query.
        """
        order = np.lexsort((-scores, self._candidates.query_of))
        if self._depth is not None:
            starts = self._candidates.starts
            sizes = np.diff(starts, append=len(order))
            ranks = np.arange(len(order)) - np.repeat(starts, sizes)
            order = order[ranks < self._depth]
        run = pd.DataFrame(
            {
                "query_id": self._query_ids[order],
                "doc_id": self._docnos[order],
                "score": -np.arange(len(order), dtype=np.float64),
            }
        )
        values = {value.query_id: value.value for value in self._evaluator.iter_calc(run)}
        return np.array([values.get(qid, 0.0) for qid in self.qids])


def _judgments(qrels: pd.DataFrame) -> pd.DataFrame:
    names = {"qid": "query_id", "docno": "doc_id", "label": "relevance"}
    qrels = qrels.rename(columns=names)
    for old, new in names.items():
        if new not in qrels.columns:
            raise HarpError(f"the judgments have no column {old}: give qid, docno and label")
    if qrels.empty:
        raise HarpError("there are no judgments to learn from: give those of some queries")
    types = {"query_id": str, "doc_id": str, "relevance": np.int64}
    qrels = qrels[[*names.values()]].astype(types)
    check_judgments(qrels)
    return qrels.drop_duplicates()
