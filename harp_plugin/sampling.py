"""Random draws that are the same in any process, for any number of workers and in any order.

The key of a draw consists of names and numbers, such as (seed, epoch, example id). The draw depends
on its key only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

__all__ = ["generator", "linear", "sample", "softmax", "stable_id", "zero_truncated_poisson"]


def stable_id(*names: str | int) -> int:
    """Return a 63-bit id that depends on the names only, so that workers need not coordinate."""
    digest = hashlib.blake2b("\x1f".join(map(str, names)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def generator(*key: str | int) -> np.random.Generator:
    """Return a counter-based generator (Philox) whose key consists of names and numbers."""
    digest = hashlib.blake2b("\x1f".join(map(str, key)).encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "big")))


def softmax(weights: np.ndarray, temperature: float = 1.0) -> np.ndarray:
    """Return the softmax of ``weights / temperature`` (HARP, eq. 3 and 11) as float64."""
    scaled = np.asarray(weights, dtype=np.float64) / temperature
    exponentials = np.exp(scaled - scaled.max())
    return exponentials / exponentials.sum()


def linear(weights: np.ndarray) -> np.ndarray:
    """Divide weights by their sum; where every weight is 0, the result is uniform."""
    weights = np.asarray(weights, dtype=np.float64)
    total = weights.sum()
    return weights / total if total > 0 else np.full(len(weights), 1 / len(weights))


def zero_truncated_poisson(rng: np.random.Generator, rate: float = 3.0) -> int:
    """Draw x ≥ 1 with P(x) ∝ λ^x e^-λ / x! (HARP, eq. 4, with the factorial it lacks in print)."""
    return 1 + int(np.searchsorted(_poisson_cdf(rate), rng.random(), side="right"))


@lru_cache(maxsize=8)
def _poisson_cdf(rate: float) -> np.ndarray:
    counts = np.arange(1, int(rate + 20 * np.sqrt(rate) + 20))
    log_factorials = np.cumsum(np.log(counts))
    probabilities = np.exp(counts * np.log(rate) - rate - log_factorials)
    return np.cumsum(probabilities / probabilities.sum())[:-1]


def sample(
    rng: np.random.Generator,
    items: Sequence[str],
    probabilities: np.ndarray,
    size: int,
    *,
    replacement: bool = True,
) -> list[str]:
    """Draw items by their probabilities.

    Args:
        rng: the generator.
        items: the items.
        probabilities: their probabilities, which sum to 1.
        size: the number of draws.
        replacement: whether an item can be drawn again. Without replacement, there are at most as
            many draws as items with a probability above 0.
    """
    if not replacement:
        size = min(size, int(np.count_nonzero(probabilities)))
    places = rng.choice(len(items), size=size, replace=replacement, p=probabilities)
    return [items[place] for place in places]
