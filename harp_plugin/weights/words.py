"""Where the words of texts stand."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np

__all__ = ["LONGEST", "Span", "TextWords", "flat", "ragged", "starts_of"]

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
