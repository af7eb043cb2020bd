"""Pinned values: BLAKE2b by RFC 7693 and Philox4x64-10 by Salmon et al. (2011), written out."""

import hashlib

import numpy as np
import pytest

from harp_plugin.sampling import generator, stable_id

WORD = 2**64
IV = (
    *(0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1),
    *(0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179),
)
SIGMA = (
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
    (14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3),
    (11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4),
    (7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8),
    (9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13),
    (2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9),
    (12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11),
    (13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10),
    (6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5),
    (10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0),
)
COLUMNS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
DIAGONALS = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))


def rotated(number, bits):
    return (number >> bits) | (number << (64 - bits)) % WORD


def blake2b(message, size):
    """The digest of a message of one block, 1 to 128 bytes, without a key."""
    block = message.ljust(128, b"\0")
    words = [int.from_bytes(block[start : start + 8], "little") for start in range(0, 128, 8)]
    state = [IV[0] ^ 0x01010000 ^ size, *IV[1:]]
    v = [*state, *IV]
    v[12] ^= len(message)
    v[14] ^= WORD - 1
    for turn in range(12):
        order = SIGMA[turn % 10]
        for place, (a, b, c, d) in enumerate((*COLUMNS, *DIAGONALS)):
            for word, (right, more) in zip(
                order[2 * place : 2 * place + 2], ((32, 24), (16, 63)), strict=True
            ):
                v[a] = (v[a] + v[b] + words[word]) % WORD
                v[d] = rotated(v[d] ^ v[a], right)
                v[c] = (v[c] + v[d]) % WORD
                v[b] = rotated(v[b] ^ v[c], more)
    digest = b"".join((h ^ v[n] ^ v[n + 8]).to_bytes(8, "little") for n, h in enumerate(state))
    return digest[:size]


def philox(key, counter):
    """The four words of 64 bits that ten rounds make of a key of 128 bits and a counter."""
    words = [counter >> 64 * place & WORD - 1 for place in range(4)]
    low, high = key % WORD, key // WORD
    for _ in range(10):
        first, second = 0xD2E7470EE14C6C93 * words[0], 0xCA5A826395121157 * words[2]
        words = [
            second // WORD ^ words[1] ^ low,
            second % WORD,
            first // WORD ^ words[3] ^ high,
            first % WORD,
        ]
        low, high = (low + 0x9E3779B97F4A7C15) % WORD, (high + 0xBB67AE8584CAA73B) % WORD
    return words


def test_blake2b_is_that_of_hashlib():
    for message in (b"a", b"seed\x1f42", bytes(range(128))):
        assert blake2b(message, 16) == hashlib.blake2b(message, digest_size=16).digest()


@pytest.mark.parametrize(
    ("names", "pinned"),
    [
        (("page", "Alpha"), 819785342363079964),
        (("anchor text", "हिन्दी"), 8629540217383587986),
        ((7,), 8333924190356522945),
    ],
)
def test_ids(names, pinned):
    """The first 63 bits of the digest of the names, joined by U+001F."""
    message = "\x1f".join(str(name) for name in names).encode()
    assert int.from_bytes(blake2b(message, 8), "big") // 2 == pinned
    assert stable_id(*names) == pinned


@pytest.mark.parametrize(
    ("key", "pinned"),
    [
        (
            (42, 0, 7),
            [
                0.725316001521449,
                0.285641287938618,
                0.5111064483209353,
                0.3874185222095349,
                0.46396655887331184,
            ],
        ),
        (
            ("folds", 1),
            [
                0.917558648142527,
                0.4764670512645942,
                0.6789200349757085,
                0.7204418871171642,
                0.46575038612242403,
            ],
        ),
    ],
)
def test_draws(key, pinned):
    """Words of Philox as fractions of 53 bits; its counter begins at 1."""
    message = "\x1f".join(str(name) for name in key).encode()
    words = philox(int.from_bytes(blake2b(message, 16), "big"), 1)
    words += philox(int.from_bytes(blake2b(message, 16), "big"), 2)
    assert [word // 2**11 / 2**53 for word in words[:5]] == pinned
    assert generator(*key).random(5).tolist() == pinned
    whole = generator(*key).integers(0, 2**64, size=8, dtype=np.uint64)
    assert [int(word) for word in whole] == words
