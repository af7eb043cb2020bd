"""Frames of results: new scores and ranks in place of the first stage's."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyterrier as pt

__all__ = ["first_stage_order", "rerank_frame"]


def rerank_frame(frame: pd.DataFrame, scores: np.ndarray) -> pd.DataFrame:
    """Replace the scores and ranks of a frame. Equal scores keep the order of the first stage.

    Args:
        frame: results of a first stage.
        scores: (rows,) the new scores.

    Returns:
        The same rows in the same order, with ``score`` (float64) and ``rank`` (from 0).
    """
    result = frame.drop(columns=["score", "rank"], errors="ignore").reset_index(drop=True)
    result["score"] = scores.astype(np.float64)
    return pt.model.add_ranks(result.iloc[first_stage_order(frame)].copy()).sort_index()


def first_stage_order(frame: pd.DataFrame) -> np.ndarray:
    """(rows,) the places of a frame's rows, those of a query best first."""
    if "rank" in frame.columns:
        return np.argsort(frame["rank"].to_numpy(), kind="stable")
    if "score" in frame.columns:
        return np.argsort(-frame["score"].to_numpy(), kind="stable")
    return np.arange(len(frame))
