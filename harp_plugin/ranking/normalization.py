"""Scores of a query's documents on one scale, so that those of several systems can be added."""

from __future__ import annotations

import numpy as np

__all__ = ["SCALES"]


def min_max(scores: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Scale the scores of each query to 0 … 1; scores that are all equal become 0.

    Args:
        scores: (systems, documents), finite; the documents of a query stand together.
        starts: (queries,) the place of each query's first document.

    Returns:
        (systems, documents) float64.
    """
    halves = scores / 2  # whose differences are finite
    query_of = _query_of(scores, starts)
    least = np.minimum.reduceat(halves, starts, axis=1)
    spread = np.maximum.reduceat(halves, starts, axis=1) - least
    return (halves - least[:, query_of]) / np.where(spread > 0, spread, 1)[:, query_of]


def z_scores(scores: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Give the scores of each query mean 0 and standard deviation 1, as `min_max` scales them.

    Scores that are all equal become 0.
    """
    scaled = min_max(scores, starts)
    query_of = _query_of(scores, starts)
    sizes = np.bincount(query_of)
    centerd = scaled - (np.add.reduceat(scaled, starts, axis=1) / sizes)[:, query_of]
    deviations = np.sqrt(np.add.reduceat(centerd**2, starts, axis=1) / sizes)
    differ = np.maximum.reduceat(scaled, starts, axis=1) > 0
    factors = np.where(differ, 1 / np.where(differ, deviations, 1), 0)
    return centerd * factors[:, query_of]


def _query_of(scores: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """(documents,) the number of each document's query."""
    return np.repeat(np.arange(len(starts)), np.diff(starts, append=scores.shape[1]))


SCALES = {"minmax": min_max, "zscore": z_scores}
"""The functions that scale scores, by the names that options use."""
