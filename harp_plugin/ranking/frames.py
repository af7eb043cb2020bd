"""Frames of queries and results: texts of queries, new scores and ranks, the best results."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, cast

import numpy as np
import pandas as pd
import pyterrier as pt

from ..errors import HarpError

__all__ = [
    "best",
    "check_frame",
    "check_queries",
    "first_stage_order",
    "rerank_frame",
    "result_frame",
    "with_cutoff",
]


def check_frame(frame: pd.DataFrame) -> None:
    """Check what every ranking needs of queries and results: ids, and numbers to order them by.

    Raises:
        HarpError: a column is there twice, an id is missing or of another type than the others, or
            a score or a rank is no number.
    """
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise HarpError(f"column {twice!r} is there twice: keep one")
    for name in ("qid", "docno"):
        ids = frame.get(name)
        if ids is not None and (row := _first(ids.isna())) is not None:
            raise HarpError(f"row {row} has no {name}: give each query and document an id")
        if ids is not None and ids.dtype == object and ids.map(type).nunique() > 1:
            raise HarpError(f"column {name!r} has texts and numbers: make all of them texts")
    for name in ("rank", "score"):
        numbers = frame.get(name)
        if numbers is None:
            continue
        if numbers.dtype == object:
            wrong = ~numbers.map(lambda value: isinstance(value, Real) and value == value)
        else:
            wrong = numbers.isna() | (not pd.api.types.is_numeric_dtype(numbers))
        if (row := _first(wrong)) is not None:
            [value] = numbers.iloc[[row]].tolist()
            raise HarpError(
                f"row {row} has the {name} {value!r:.40}, which is no number: give numbers, or "
                f"drop the column {name!r}"
            )


def check_queries(frame: pd.DataFrame) -> None:
    """Check that a frame has each query once, so that each has one ranking.

    Raises:
        HarpError: a qid is there twice.
    """
    if (row := _first(frame["qid"].duplicated())) is not None:
        raise HarpError(
            f"row {row} has the qid {frame['qid'].iloc[row]!r:.80} of a row before it: give each "
            "query its own, or keep one row"
        )


def _first(rows: pd.Series) -> int | None:
    """Return the number of the first row for which this is true."""
    return int(np.argmax(rows)) if rows.any() else None


def rerank_frame(frame: pd.DataFrame, scores: np.ndarray) -> pd.DataFrame:
    """Replace the scores and ranks of a frame. Equal scores keep the order of the first stage.

    Args:
        frame: results of a first stage.
        scores: (rows,) the new scores.

    Returns:
        The same rows in the same order, with ``score`` (float64) and ``rank`` (from 0); ordered by
        query and rank where ``pt.model.STRICT_SORT`` is set.
    """
    result = frame.drop(columns=["score", "rank"], errors="ignore").reset_index(drop=True)
    result["score"] = scores.astype(np.float64)
    ranked = pt.model.add_ranks(result.iloc[first_stage_order(frame)].copy())
    return ranked.reset_index(drop=True) if pt.model.STRICT_SORT else ranked.sort_index()


def first_stage_order(frame: pd.DataFrame) -> np.ndarray:
    """(rows,) the indices of a frame's rows, those of a query best first."""
    if "rank" in frame.columns:
        return np.argsort(frame["rank"].to_numpy(), kind="stable")
    if "score" in frame.columns:
        return np.argsort(-frame["score"].to_numpy(), kind="stable")
    return np.arange(len(frame))


def result_frame(
    queries: pd.DataFrame, results: Sequence[tuple[np.ndarray, np.ndarray]]
) -> pd.DataFrame:
    """Repeat the row of each query for each of its results.

    Args:
        queries: the frame that was searched for.
        results: docnos and scores for each row, best first.

    Returns:
        The columns of ``queries`` and ``docno``, ``score`` (float64) and ``rank`` (from 0).
    """
    sizes = [len(docnos) for docnos, _ in results]
    kept = queries.drop(columns=["docno", "score", "rank"], errors="ignore")
    frame = kept.iloc[np.repeat(np.arange(len(kept)), sizes)].reset_index(drop=True)
    docnos = [docno for of_query, _ in results for docno in of_query]
    scores = [np.zeros(0), *(scores for _, scores in results)]
    return frame.assign(
        docno=pd.Series(docnos, dtype=object),
        score=np.concatenate(scores).astype(np.float64),
        rank=np.concatenate([np.zeros(0, np.int64), *map(np.arange, sizes)]).astype(np.int64),
    )


def with_cutoff(transformer: Any, count: int) -> pt.Transformer:
    """Return the transformer of ``transformer % count``, which retrieves no more than it keeps.

    Args:
        transformer: a transformer that retrieves its ``num_results`` best results.
        count: how many results are kept.
    """
    if count >= transformer.num_results:
        return cast(pt.Transformer, transformer)
    return pt.inspect.transformer_apply_attributes(transformer, num_results=count)


def best(scores: np.ndarray, ids: np.ndarray, count: int) -> np.ndarray:
    """Find the best results, best first.

    Args:
        scores: (results,).
        ids: (results,) distinct numbers; of equal scores, the one with the smallest is first.
        count: the most results that are returned.

    Returns:
        (at most count,) indices into ``scores``.
    """
    chosen = np.arange(len(scores))
    if 0 < count < len(scores):
        cut = len(scores) - count
        chosen = np.flatnonzero(scores >= np.partition(scores, cut)[cut])
    return chosen[np.lexsort((ids[chosen], -scores[chosen]))[:count]]
