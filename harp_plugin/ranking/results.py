"""What the first stages share: frames of queries and of results, and the number of results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pandas as pd
import pyterrier as pt

from ..errors import HarpError

__all__ = ["query_texts", "result_frame", "with_cutoff"]


def query_texts(frame: pd.DataFrame) -> list[str]:
    """Read the queries of a frame.

    Raises:
        HarpError: a query is no string; the message names its qid.
    """
    for qid, query in zip(frame["qid"], frame["query"], strict=True):
        if not isinstance(query, str):
            raise HarpError(f"the query of qid {qid} is {query!r:.40}: it must be a text")
    return frame["query"].tolist()


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
    docnos = [docno for found, _ in results for docno in found]
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
