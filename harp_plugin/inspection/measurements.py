"""Scores that do not read: how often do they tell the positive of a group from its negatives?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from ..tasks import Pair
from ..text import words
from .groups import AuditedGroups, Observation, Side

__all__ = [
    "Measure",
    "Measurement",
    "Scores",
    "accuracy",
    "bm25_of",
    "compared",
    "compared_pairs",
    "compared_texts",
    "first_capital",
    "fraction_of_capitals",
    "higher_bm25",
    "higher_cosine",
    "nearness_to_start",
    "shared_words",
    "term_frequency",
    "word_count",
]

Scores: TypeAlias = Sequence[float | None]
"""A score for each member of a group, the positive's first; None where a member has none."""
_Z = 1.959963984540054
"""Quantile of the standard normal distribution for an interval of 95 %."""
_K1, _B = 1.2, 0.75


@dataclass(frozen=True, slots=True)
class Measurement:
    """How often a score tells the positive.

    Attributes:
        value: fraction of the pairs of a positive and a negative in which the positive has the
            higher score; a tie counts one half.
        interval: its 95 % Wilson interval; the pairs of one group count as one trial.
        groups: number of groups.
        pairs: number of pairs of a positive and a negative.
        decided: fraction of these pairs that are not tied.
    """

    value: float
    interval: tuple[float, float]
    groups: int
    pairs: int
    decided: float

    def of_the_opposite(self) -> Measurement:
        """Measure the opposite score."""
        low, high = self.interval
        interval = 1 - high, 1 - low
        return Measurement(1 - self.value, interval, self.groups, self.pairs, self.decided)


Measure: TypeAlias = Callable[[AuditedGroups], Measurement | None]


def accuracy(groups: Iterable[Scores]) -> Measurement | None:
    """Measure how often the positive has a higher score than a negative.

    Args:
        groups: the scores of each group. Pairs in which a member has no score are left out.

    Returns:
        None where no pair is left.
    """
    compared = [
        [(positive, negative) for negative in negatives if negative is not None]
        for positive, *negatives in groups
        if positive is not None
    ]
    trials = sum(bool(pairs) for pairs in compared)
    if not trials:
        return None
    pairs = [pair for group in compared for pair in group]
    right = sum(positive > negative for positive, negative in pairs)
    wrong = sum(positive < negative for positive, negative in pairs)
    value = 0.5 + (right - wrong) / (2 * len(pairs))
    decided = (right + wrong) / len(pairs)
    return Measurement(value, _wilson_interval(value, trials), trials, len(pairs), decided)


def _wilson_interval(value: float, trials: int) -> tuple[float, float]:
    """Return the 95 % interval; ties make half counts, which the one of scipy does not take."""
    square = _Z * _Z / trials
    center = (value + square / 2) / (1 + square)
    half = _Z / (1 + square) * math.sqrt(value * (1 - value) / trials + square / (4 * trials))
    return max(0.0, center - half), min(1.0, center + half)


def compared(scores: Callable[[Observation, AuditedGroups], Scores], *sides: Side) -> Measure:
    """Make a measure of the scores of each group's members.

    Args:
        scores: gives them.
        sides: of the texts of a pair that are scored; the measure applies to groups of which any
            has different ones.
    """

    def measure(groups: AuditedGroups) -> Measurement | None:
        if not groups.differ(*sides):
            return None
        return accuracy(scores(observation, groups) for observation in groups.observations)

    return measure


def compared_texts(side: Side, score: Callable[[str], float]) -> Measure:
    """Make a measure of a score of one side's texts."""
    return compared(lambda each, _: [score(getattr(p, side)) for p in each.group.members], side)


def compared_pairs(score: Callable[[Pair, frozenset[str]], float]) -> Measure:
    """Make a measure of how well a query and its document match; the score sees the stop words."""
    return compared(
        lambda each, groups: [score(pair, groups.stopped) for pair in each.group.members],
        "query",
        "document",
    )


@lru_cache(maxsize=1 << 12)
def _word_list(text: str) -> tuple[str, ...]:
    """Return the lower-cased words of a text, in order."""
    return tuple(words(text.lower()))


def word_count(text: str) -> int:
    """Return the number of words in a text."""
    return len(words(text))


def fraction_of_capitals(text: str) -> float:
    """Return which fraction of the letters of a text are capitals."""
    letters = [character for character in text if character.isalpha()]
    return sum(map(str.isupper, letters)) / max(1, len(letters))


def first_capital(text: str) -> float:
    """Return 1 where a text begins with a capital, else 0."""
    return float(text[:1].isupper())


def shared_words(pair: Pair, stopped: frozenset[str]) -> float:
    """Return how many distinct words query and document share."""
    return len({*_word_list(pair.query)} & {*_word_list(pair.document)} - stopped)


def term_frequency(pair: Pair, stopped: frozenset[str]) -> float:
    """Return how often the distinct words of the query occur in the document, added up."""
    query = {*_word_list(pair.query)} - stopped
    return sum(word in query for word in _word_list(pair.document))


def nearness_to_start(pair: Pair, stopped: frozenset[str]) -> float:
    """Return the index of the document's first word that is in the query, times -1.

    A document without any word of its query comes last.
    """
    query = {*_word_list(pair.query)} - stopped
    indexes = (index for index, word in enumerate(_word_list(pair.document)) if word in query)
    return -float(next(indexes, math.inf))


def bm25_of(texts: Iterable[str]) -> Callable[[str, str], float]:
    """Count the words of a collection, and make a function that scores a query and a document.

    It is Okapi BM25 with the parameters and the inverse document frequency of Lucene; a word that a
    query repeats counts twice.
    """
    frequencies: Counter[str] = Counter()
    documents = length = 0
    for text in texts:
        text_words = words(text.lower())
        frequencies.update({*text_words})
        documents, length = documents + 1, length + len(text_words)
    mean_length = max(1.0, length / max(1, documents))

    def weight(word: str) -> float:
        frequency = frequencies[word]
        return math.log(1 + (documents - frequency + 0.5) / (frequency + 0.5))

    def score(query: str, document: str) -> float:
        counts = Counter(_word_list(document))
        norm = _K1 * (1 - _B + _B * counts.total() / mean_length)
        return sum(
            weight(word) * (_K1 + 1) * counts[word] / (counts[word] + norm)
            for word in _word_list(query)
            if word in counts
        )

    return score


def higher_bm25(groups: AuditedGroups) -> Measurement | None:
    """Measure BM25, by the words of the build's documents."""
    bm25 = groups.bm25
    if bm25 is None:
        return None
    return compared_pairs(lambda pair, _: bm25(pair.query, pair.document))(groups)


def higher_cosine(groups: AuditedGroups) -> Measurement | None:
    """Measure the cosine of two texts by the encoder, without training."""
    encoder = groups.encoder
    if encoder is None:
        return None
    pairs = [pair for observation in groups.observations for pair in observation.group.members]
    encoder.embed([text for pair in pairs for text in (pair.query, pair.document)])
    return compared_pairs(lambda pair, _: encoder.cosine(pair.query, pair.document))(groups)
