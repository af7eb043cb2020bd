"""Computes the bands that reveal near-duplicate texts: MinHash and locality-sensitive hashing.

The bands are stored, so they must not depend on the versions of installed packages. They are
therefore computed with integers only and not with a library: multilinear hashing modulo 2^64
(Lemire and Kaser, 2014), and affine permutations of 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from zlib import crc32

import numpy as np

from ..sampling import stable_id

__all__ = ["BANDS", "MIN_WORDS", "ROWS", "bands"]

MIN_WORDS = 10
BANDS = 6
ROWS = 14
_GRAM = 3
_CHUNK = 1 << 12


def _constants(name: str, *shape: int) -> np.ndarray:
    """Return odd numbers that depend on a name only."""
    numbers = [2 * stable_id(name, n) + 1 for n in range(int(np.prod(shape)))]
    return np.array(numbers, dtype=np.uint64).reshape(shape)


_PLACES = _constants("place in a word n-gram", _GRAM)
_FACTORS = _constants("factor of MinHash", BANDS * ROWS, 1).astype(np.uint32)
_SHIFTS = _constants("shift of MinHash", BANDS * ROWS, 1).astype(np.uint32)
_CELLS = _constants("cell of a signature", BANDS, ROWS)


def bands(words: Sequence[str]) -> list[int]:
    """Return the bands of a text; two texts that share a band count as near-duplicates.

    Each of 6 bands is a hash of 14 minima over the word 3-grams of the text in lower case (Broder,
    1997; Indyk and Motwani, 1998). Two texts whose sets of 3-grams have the Jaccard similarity s
    share a band with probability 1 - (1 - s^14)^6: 1/2 at s = 0.85, 0.005 at 0.6, 0.98 at 0.95, 1
    at 1. Leads that a template made for hundreds of pages, each with another name, therefore
    mostly do not count as near-duplicates.

    Args:
        words: the words of the text in order.

    Returns:
        The bands, integers of 63 bits; an empty list for a text of fewer than 10 words.
    """
    if len(words) < MIN_WORDS:
        return []
    encoded = " ".join(words).lower().encode().split(b" ")
    hashes = np.fromiter(map(crc32, encoded), np.uint64, len(words))
    count = len(words) - _GRAM + 1
    grams = hashes[:count] * _PLACES[0]
    for place in range(1, _GRAM):
        grams += hashes[place : place + count] * _PLACES[place]
    grams = (grams >> np.uint64(32)).astype(np.uint32)
    chunks = (grams[start : start + _CHUNK] for start in range(0, count, _CHUNK))
    minima = reduce(np.minimum, ((_FACTORS * chunk + _SHIFTS).min(axis=1) for chunk in chunks))
    rows = (minima.reshape(BANDS, ROWS) * _CELLS).sum(axis=1)
    return (rows >> np.uint64(1)).tolist()
