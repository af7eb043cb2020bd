"""Distinct texts and distinct pairs, so that each is tokenised and scored once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["distinct", "distinct_pairs"]


def distinct(texts: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """Return the place of each text among the distinct ones, (n,), and these as they appear."""
    places: dict[str, int] = {}
    of = np.fromiter((places.setdefault(text, len(places)) for text in texts), np.int64, len(texts))
    return of, list(places)


def distinct_pairs(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows of (n, 2) places, and the place of each row among them, (n,)."""
    if not len(pairs):
        return pairs, np.zeros(0, dtype=np.int64)
    width = int(pairs[:, 1].max()) + 1
    codes, inverse = np.unique(pairs[:, 0] * width + pairs[:, 1], return_inverse=True)
    return np.stack(np.divmod(codes, width), axis=1), inverse
