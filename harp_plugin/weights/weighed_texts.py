"""Weights of many texts' words, as flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from .words import TextWords, ragged, starts_of

__all__ = ["TextWeights", "WeighedTexts"]


@dataclass(frozen=True, slots=True)
class TextWeights:
    """Weights of one text's words.

    Attributes:
        spans: character offsets of the words, int of shape (words, 2).
        cls: attention of [CLS] to each word, float32 of shape (words,).
        anchors: attention of each anchor to each word, float32 of shape (anchors, words); a row of
            NaN where the anchor lies beyond the model's limit.
        layer_before: attention of [CLS] to the words in the span of each anchor, added up, by the
            layer before the last, float32 of shape (anchors,); NaN where it was not computed.
        cut: whether the text was longer than the model's limit.
    """

    spans: np.ndarray
    cls: np.ndarray
    anchors: np.ndarray
    layer_before: np.ndarray
    cut: bool


@dataclass(frozen=True, slots=True)
class WeighedTexts(Sequence[TextWeights]):
    """Weights of texts, one text after the other; an item is the `TextWeights` of one.

    Attributes:
        words: where the words and anchors of the texts stand.
        cls: attention of [CLS] to each word, float32 of shape (words,).
        row_starts: where each anchor's row starts in ``rows``, and the end; shape (anchors + 1,).
        rows: attention of each anchor to each word of its text, float32; NaN where the anchor lies
            beyond the model's limit.
        layer_before: attention of [CLS] to the words in the span of each anchor, added up, by the
            layer before the last, float32 of shape (anchors,); NaN where it was not computed.
    """

    words: TextWords
    cls: np.ndarray
    row_starts: np.ndarray
    rows: np.ndarray
    layer_before: np.ndarray

    @classmethod
    def zeros(cls, words: TextWords) -> WeighedTexts:
        """Make weights of 0, to which `add_cls` and `add_anchors` add."""
        widths = words.counts[words.anchor_texts]
        row_starts = starts_of(widths)
        rows = np.zeros(row_starts[-1], dtype=np.float32)
        rows[np.repeat(~words.anchor_inside, widths)] = np.nan
        weights = np.zeros(len(words.spans), dtype=np.float32)
        layer_before = np.full(len(words.anchor_texts), np.nan, dtype=np.float32)
        return cls(words, weights, row_starts, rows, layer_before)

    @property
    def row_words(self) -> np.ndarray:
        """The word that each weight in ``rows`` is of, int64 of shape (weights,)."""
        return ragged(self.words.starts[self.words.anchor_texts], np.diff(self.row_starts))

    def __len__(self) -> int:
        return len(self.words)

    @overload
    def __getitem__(self, index: int) -> TextWeights: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[TextWeights]: ...
    def __getitem__(self, index: int | slice) -> TextWeights | Sequence[TextWeights]:
        """Return the weights of one text, as views."""
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        index = range(len(self))[index]
        words = slice(*self.words.starts[index : index + 2])
        first, after = self.words.anchor_starts[index : index + 2]
        rows = self.rows[self.row_starts[first] : self.row_starts[after]]
        shape = (int(after - first), int(words.stop - words.start))
        return TextWeights(
            self.words.spans[words],
            self.cls[words],
            rows.reshape(shape),
            self.layer_before[first:after],
            bool(self.words.cut[index]),
        )

    def add_cls(self, texts: np.ndarray, owner: np.ndarray, attention: np.ndarray) -> None:
        """Add rows of [CLS] to their words.

        Args:
            texts: the numbers of the texts, of shape (n,).
            owner: each token's word, counted within its text, -1 for none; shape (n, tokens).
            attention: of shape (n, tokens).
        """
        owned = owner >= 0
        np.add.at(self.cls, (self.words.starts[texts, None] + owner)[owned], attention[owned])

    def add_layer_before(self, texts: np.ndarray, owner: np.ndarray, attention: np.ndarray) -> None:
        """Set the weights of texts' anchors by the layer before the last.

        Args:
            texts: the numbers of the texts, of shape (n,).
            owner: as in `add_cls`.
            attention: of [CLS], of shape (n, tokens).
        """
        owned = owner >= 0
        of_words = np.zeros(len(self.words.spans), dtype=np.float32)
        np.add.at(of_words, (self.words.starts[texts, None] + owner)[owned], attention[owned])
        starts = self.words.anchor_starts
        anchors = ragged(starts[texts], starts[texts + 1] - starts[texts])
        first, counts = (values[anchors] for values in self.words.anchor_words)
        self.layer_before[anchors] = 0
        np.add.at(self.layer_before, np.repeat(anchors, counts), of_words[ragged(first, counts)])

    def add_anchors(
        self, texts: np.ndarray, owner: np.ndarray, attention: np.ndarray, pieces: np.ndarray
    ) -> None:
        """Add the mean over each anchor's wordpieces to its text's words.

        Args:
            texts: the numbers of the texts, of shape (n,).
            owner: as in `add_cls`.
            attention: rows of the pieces of these texts' anchors, one anchor after the other, of
                shape (pieces, tokens).
            pieces: the number of pieces of each anchor of all texts, of shape (anchors,).
        """
        starts = self.words.anchor_starts
        counts = starts[texts + 1] - starts[texts]
        anchors = ragged(starts[texts], counts)
        text = np.repeat(np.arange(len(texts)), counts)
        pieces = pieces[anchors]
        anchors, text, pieces = anchors[pieces > 0], text[pieces > 0], pieces[pieces > 0]
        if not len(anchors):
            return
        first = np.cumsum(pieces) - pieces
        means = np.add.reduceat(attention, first, axis=0) / pieces[:, None].astype(np.float32)
        owned = owner[text] >= 0
        places = self.row_starts[anchors, None] + owner[text]
        np.add.at(self.rows, places[owned], means[owned])
