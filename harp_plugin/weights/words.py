"""Words of texts: where they stand, and which are the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from ..text import WORD

__all__ = [
    "LONGEST",
    "DistinctWords",
    "Span",
    "TextWords",
    "find_distinct_words",
    "find_words",
    "flat",
    "ragged",
    "starts_of",
]

LONGEST = 65535
"""Characters of a text in which words can be stored."""

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class TextWords:
    """Where the words and anchors of texts stand: flat arrays, one text after the other.

    Attributes:
        spans: character offsets of the words, int64 of shape (words, 2).
        starts: the first word of each text and the end, int64 of shape (texts + 1,).
        anchor_spans: character offsets of the anchors, int64 of shape (anchors, 2).
        anchor_starts: the first anchor of each text and the end, int64 of shape (texts + 1,).
        anchor_inside: whether an anchor lies in the part of its text that is kept, bool of shape
            (anchors,).
        cut: whether a text has words beyond the part that is kept, bool of shape (texts,).
    """

    spans: np.ndarray
    starts: np.ndarray
    anchor_spans: np.ndarray
    anchor_starts: np.ndarray
    anchor_inside: np.ndarray
    cut: np.ndarray

    def __len__(self) -> int:
        return len(self.cut)

    @property
    def counts(self) -> np.ndarray:
        """The number of words of each text, of shape (texts,)."""
        return np.diff(self.starts)

    @property
    def word_texts(self) -> np.ndarray:
        """The number of the text that each word belongs to, of shape (words,)."""
        return np.repeat(np.arange(len(self)), self.counts)

    @property
    def anchor_texts(self) -> np.ndarray:
        """The number of the text that each anchor belongs to, of shape (anchors,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.anchor_starts))

    @property
    def anchor_words(self) -> tuple[np.ndarray, np.ndarray]:
        """The first word in the span of each anchor, and the number of words, of shape (anchors,).

        A word of which a part lies in the span counts.
        """
        # All texts share one range of offsets, so that one search finds the words of all anchors.
        stride = 1 + max(int(self.spans.max(initial=0)), int(self.anchor_spans.max(initial=0)))
        words = self.spans + self.word_texts[:, None] * stride
        anchors = self.anchor_spans + self.anchor_texts[:, None] * stride
        first = np.searchsorted(words[:, 1], anchors[:, 0], "right")
        after = np.searchsorted(words[:, 0], anchors[:, 1], "left")
        return first, np.maximum(after - first, 0)


class DistinctWords(NamedTuple):
    """The distinct words of each text, lower-cased: repeats of a word in a text are merged.

    Attributes:
        vocabulary: the distinct words of all the texts together.
        text: the text of each distinct word, int64 of shape (distinct,).
        number: its index in ``vocabulary``, int64 of shape (distinct,).
        frequency: how often it stands in its text, int64 of shape (distinct,).
        at: for every word, in the order of the texts, which of the distinct words it is; int64 of
            shape (words,).
    """

    vocabulary: list[str]
    text: np.ndarray
    number: np.ndarray
    frequency: np.ndarray
    at: np.ndarray

    @classmethod
    def merged(cls, vocabulary: list[str], number: np.ndarray, text: np.ndarray) -> DistinctWords:
        """Merge the repeats of words within each text.

        Args:
            vocabulary: the distinct words of all texts.
            number: the index of each word in ``vocabulary``, int64 of shape (words,).
            text: the text of each word, int64 of shape (words,).
        """
        size = max(1, len(vocabulary))
        keys, at, frequency = np.unique(
            text * size + number, return_inverse=True, return_counts=True
        )
        return cls(vocabulary, keys // size, keys % size, frequency, at.reshape(-1))


def find_words(texts: Sequence[str], anchors: Sequence[Sequence[Span]] | None = None) -> TextWords:
    """Find the words of texts, as far as they can be stored.

    Args:
        texts: the texts.
        anchors: character offsets of the anchors of each text.
    """
    spans = [[match.span() for match in WORD.finditer(text)] for text in texts]
    kept = [[span for span in words if span[1] <= LONGEST] for words in spans]
    anchors = [()] * len(texts) if anchors is None else anchors
    anchor_spans = flat(chain.from_iterable(anchors)).reshape(-1, 2)
    return TextWords(
        flat(chain.from_iterable(kept)).reshape(-1, 2),
        starts_of(map(len, kept)),
        anchor_spans,
        starts_of(map(len, anchors)),
        anchor_spans[:, 1] <= LONGEST,
        np.array([len(a) < len(b) for a, b in zip(kept, spans, strict=True)], dtype=bool),
    )


def find_distinct_words(texts: Sequence[str], words: TextWords) -> DistinctWords:
    """Read the words of texts and merge the repeats within each text.

    Args:
        texts: the texts.
        words: where their words stand.
    """
    numbers: dict[str, int] = {}
    text = words.word_texts
    spans = zip(text.tolist(), words.spans.tolist(), strict=True)
    number = [
        numbers.setdefault(texts[i][start:end].lower(), len(numbers)) for i, (start, end) in spans
    ]
    return DistinctWords.merged(list(numbers), np.array(number, dtype=np.int64), text)


def flat(parts: Iterable[Iterable[int]]) -> np.ndarray:
    """All integers of the parts, one part after the other, as an int64 array."""
    return np.fromiter(chain.from_iterable(parts), dtype=np.int64)


def starts_of(counts: Iterable[int] | np.ndarray) -> np.ndarray:
    """Where each of consecutive parts starts, and where the last ends, as an int64 array."""
    if not isinstance(counts, np.ndarray):
        counts = np.fromiter(counts, dtype=np.int64)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def ragged(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The numbers ``start, ..., start + length - 1`` of each part, one part after the other."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))
