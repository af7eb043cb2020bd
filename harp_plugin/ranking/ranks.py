"""The best results of a query, whose order does not depend on how they were computed."""

from __future__ import annotations

import numpy as np

__all__ = ["best"]


def best(scores: np.ndarray, places: np.ndarray, count: int) -> np.ndarray:
    """Find the best results, best first.

    Args:
        scores: (results,).
        places: (results,) distinct numbers; of equal scores, the one with the smallest is first.
        count: the most results that are returned.

    Returns:
        (at most count,) indices into ``scores``.
    """
    chosen = np.arange(len(scores))
    if 0 < count < len(scores):
        cut = len(scores) - count
        chosen = np.flatnonzero(scores >= np.partition(scores, cut)[cut])
    return chosen[np.lexsort((places[chosen], -scores[chosen]))[:count]]
