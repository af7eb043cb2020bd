"""Bands are shared as often as MinHash says, for pairs of known Jaccard similarity."""

import random

import pytest

from harp_plugin.corpus.near_duplicates import BANDS, MIN_WORDS, ROWS, bands
from harp_plugin.text import words

SENTENCE = "The Ant is a small insect, and it's eaten by an anteater: here is one of them."
EXPECTED = [
    4993732216641816252,
    2541601197164729388,
    2507217204480038715,
    8480678269658950756,
    1303043628460193712,
    7842387689686015109,
]


def grams(text):
    return {tuple(text[n : n + 3]) for n in range(len(text) - 2)}


def pair(draw, size, changed):
    """Two lists of distinct words, alike but for a stretch, and their Jaccard similarity."""
    numbers = draw.sample(range(10**6), size + changed)
    one = [f"w{number}" for number in numbers[:size]]
    start = draw.randrange(size - changed)
    other = [*one[:start], *(f"w{n}" for n in numbers[size:]), *one[start + changed :]]
    union = grams(one) | grams(other)
    return one, other, len(grams(one) & grams(other)) / len(union)


@pytest.mark.parametrize(
    ("size", "changed"), [(42, 1), (102, 1), (302, 8), (302, 22), (82, 4), (302, 60)]
)
def test_pairs_of_known_similarity(size, changed):
    draw = random.Random(size + changed)
    found = expected = variance = 0.0
    for _ in range(400):
        one, other, similarity = pair(draw, size, changed)
        chance = 1 - (1 - similarity**ROWS) ** BANDS
        found += not set(bands(one)).isdisjoint(bands(other))
        expected += chance
        variance += chance * (1 - chance)
    assert abs(found - expected) < 4 * variance**0.5 + 1


def test_half_are_found_at_a_similarity_of_085():
    assert 0.45 < 1 - (1 - 0.85**ROWS) ** BANDS < 0.55


def test_the_same_on_any_machine():
    """Worked out once; a change makes stored tables and new ones disagree."""
    assert bands(words(SENTENCE)) == EXPECTED


def test_what_is_equal():
    found = bands(words(SENTENCE))
    assert len(set(found)) == BANDS and all(0 <= band < 2**63 for band in found)
    assert bands(words(SENTENCE.upper())) == found
    assert bands(words(SENTENCE + " " + SENTENCE)) != found
    assert set(bands(words(SENTENCE)[::-1])).isdisjoint(found)


def test_short_texts_have_none():
    text = words("one two three four five six seven eight nine ten")
    assert len(text) == MIN_WORDS
    assert bands(text[:-1]) == [] and len(bands(text)) == BANDS


def test_long_texts_are_hashed_in_pieces():
    """The bands are those of the set of n-grams, so a text said twice has but two n-grams more."""
    draw = random.Random(5)
    text = [f"w{draw.randrange(10**6)}" for _ in range(9_000)]
    assert set(bands(text)) & set(bands([*text, *text]))
