"""Find distinct texts and distinct pairs, so that each is tokenized and scored once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["distinct", "distinct_pairs"]


def distinct(texts: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """Return for each text its index among the distinct texts, (n,), and the distinct texts.

    The distinct texts are in the order of their first appearance.
    """
    index_of: dict[str, int] = {}
    indices = np.fromiter(
        (index_of.setdefault(text, len(index_of)) for text in texts), np.int64, len(texts)
    )
    return indices, list(index_of)


def distinct_pairs(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows of (n, 2) indices, and for each row its index among them, (n,)."""
    if not len(pairs):
        return pairs, np.zeros(0, dtype=np.int64)
    width = int(pairs[:, 1].max()) + 1
    codes, inverse = np.unique(pairs[:, 0] * width + pairs[:, 1], return_inverse=True)
    return np.stack(np.divmod(codes, width), axis=1), inverse
