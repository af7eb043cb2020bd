"""Bands by which near-duplicate texts are found: MinHash, and locality-sensitive hashing.

The bands are stored, so they must be the same whatever is installed: hence no library, whose hashes
change with its version, but integers alone: multilinear hashing modulo 2^64 (Lemire and Kaser,
2014), and affine permutations of 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from zlib import crc32

import numpy as np

from ..sampling import stable_id

MIN_WORDS = 10
BANDS = 6
ROWS = 14
_GRAM = 3
_CHUNK = 1 << 12


def _constants(name: str, *shape: int) -> np.ndarray:
    """Odd numbers that are drawn by name."""
    drawn = [2 * stable_id(name, n) + 1 for n in range(int(np.prod(shape)))]
    return np.array(drawn, dtype=np.uint64).reshape(shape)


_PLACES = _constants("place in a word n-gram", _GRAM)
_FACTORS = _constants("factor of MinHash", BANDS * ROWS, 1).astype(np.uint32)
_SHIFTS = _constants("shift of MinHash", BANDS * ROWS, 1).astype(np.uint32)
_CELLS = _constants("cell of a signature", BANDS, ROWS)


def bands(words: Sequence[str]) -> list[int]:
    """63-bit bands of a text; two texts with a band in common are taken for near-duplicates.

    Each of 6 bands is a hash of 14 minima over the text's word 3-grams, lower-cased (Broder, 1997;
    Indyk and Motwani, 1998). Two texts whose sets of 3-grams have the Jaccard similarity s share a
    band with probability 1 - (1 - s^14)^6: 1/2 at s = 0.85, 0.005 at 0.6, 0.98 at 0.95, 1 at 1. So
    leads that a template made for hundreds of pages, with another name in each, mostly pass.

    Args:
        words: the text's words in order.

    Returns:
        The bands; none for a text of fewer than 10 words.
    """
    if len(words) < MIN_WORDS:
        return []
    written = " ".join(words).lower().encode().split(b" ")
    hashes = np.fromiter(map(crc32, written), np.uint64, len(words))
    count = len(words) - _GRAM + 1
    grams = hashes[:count] * _PLACES[0]
    for place in range(1, _GRAM):
        grams += hashes[place : place + count] * _PLACES[place]
    grams = (grams >> np.uint64(32)).astype(np.uint32)
    chunks = (grams[start : start + _CHUNK] for start in range(0, count, _CHUNK))
    minima = reduce(np.minimum, ((_FACTORS * chunk + _SHIFTS).min(axis=1) for chunk in chunks))
    rows = (minima.reshape(BANDS, ROWS) * _CELLS).sum(axis=1)
    return (rows >> np.uint64(1)).tolist()
