"""Draws that depend on what is drawn and on nothing else.

A draw is keyed by names and numbers such as (seed, epoch, example id). The same key gives the same
draw in any process, worker or order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache

import numpy as np


def stable_id(*names: str | int) -> int:
    """A stable 63-bit id of what the names say: no coordination between workers."""
    digest = hashlib.blake2b("\x1f".join(map(str, names)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def generator(*key: str | int) -> np.random.Generator:
    """A counter-based generator (Philox) keyed by names and numbers."""
    digest = hashlib.blake2b("\x1f".join(map(str, key)).encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "big")))


def softmax(weights: np.ndarray, temperature: float = 1.0) -> np.ndarray:
    """Softmax of ``weights / temperature`` (HARP, eq. 3 and 11), float64."""
    scaled = np.asarray(weights, dtype=np.float64) / temperature
    exponentials = np.exp(scaled - scaled.max())
    return exponentials / exponentials.sum()


def linear(weights: np.ndarray) -> np.ndarray:
    """Plain normalisation to a sum of 1; uniform where every weight is 0."""
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


def truncated_normal_length(rng: np.random.Generator, mean: float = 3.0) -> int:
    """Draw int(Normal(mean, 1)), again until it is ≥ 1, as the HARP authors' released code does."""
    while True:
        length = int(rng.normal(mean, 1))
        if length >= 1:
            return length


def sample(
    rng: np.random.Generator,
    items: Sequence[str],
    probabilities: np.ndarray,
    size: int,
    *,
    replacement: bool = True,
) -> list[str]:
    """Draw ``size`` items; without replacement at most as many as have a probability above 0."""
    if not replacement:
        size = min(size, int(np.count_nonzero(probabilities)))
    chosen = rng.choice(len(items), size=size, replace=replacement, p=probabilities)
    return [items[index] for index in chosen]
