"""Weights of many texts' words, as flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from .tokens import TokenisedTexts, ragged


@dataclass(frozen=True, slots=True)
class TextWeights:
    """Weights of one text's words.

    Attributes:
        spans: character offsets of the words, int of shape (words, 2).
        cls: attention of [CLS] to each word, float32 of shape (words,).
        anchors: attention of each anchor to each word, float32 of shape (anchors, words); a row of
            NaN where the anchor lies beyond the model's limit.
        cut: whether the text was longer than the model's limit.
    """

    spans: np.ndarray
    cls: np.ndarray
    anchors: np.ndarray
    cut: bool


@dataclass(frozen=True, slots=True)
class WeighedTexts(Sequence[TextWeights]):
    """Weights of texts, one text after the other; an item is the `TextWeights` of one.

    Attributes:
        spans: character offsets of the words, int64 of shape (words, 2).
        word_starts: the first word of each text and the end, shape (texts + 1,).
        cls: attention of [CLS] to each word, float32 of shape (words,).
        anchor_starts: the first anchor of each text and the end, shape (texts + 1,).
        row_starts: where each anchor's row starts in ``rows``, and the end; shape (anchors + 1,).
        rows: attention of each anchor to each word of its text, float32; NaN where the anchor lies
            beyond the model's limit.
        cut: whether a text was longer than the model's limit, bool of shape (texts,).
    """

    spans: np.ndarray
    word_starts: np.ndarray
    cls: np.ndarray
    anchor_starts: np.ndarray
    row_starts: np.ndarray
    rows: np.ndarray
    cut: np.ndarray
    _piece_counts: np.ndarray

    @property
    def known(self) -> np.ndarray:
        """Whether an anchor lies within the model's limit, bool of shape (anchors,)."""
        return self._piece_counts > 0

    @classmethod
    def empty_for(cls, texts: TokenisedTexts) -> WeighedTexts:
        """Weights of 0 that `add_cls` and `add_anchors` add to."""
        widths = np.repeat(np.diff(texts.word_starts), np.diff(texts.anchor_starts))
        row_starts = np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)
        counts = np.diff(texts.piece_starts)
        rows = np.zeros(row_starts[-1], dtype=np.float32)
        rows[np.repeat(counts == 0, widths)] = np.nan
        return cls(
            texts.spans,
            texts.word_starts,
            np.zeros(len(texts.spans), dtype=np.float32),
            texts.anchor_starts,
            row_starts,
            rows,
            texts.cut,
            counts,
        )

    def __len__(self) -> int:
        return len(self.cut)

    @overload
    def __getitem__(self, index: int) -> TextWeights: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[TextWeights]: ...
    def __getitem__(self, index: int | slice) -> TextWeights | Sequence[TextWeights]:
        """Weights of one text, as views."""
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        index = range(len(self))[index]
        words = slice(*self.word_starts[index : index + 2])
        first, after = self.anchor_starts[index : index + 2]
        rows = self.rows[self.row_starts[first] : self.row_starts[after]]
        shape = (int(after - first), int(words.stop - words.start))
        return TextWeights(
            self.spans[words], self.cls[words], rows.reshape(shape), bool(self.cut[index])
        )

    def add_cls(self, texts: np.ndarray, owner: np.ndarray, attention: np.ndarray) -> None:
        """Add rows of [CLS] to their words.

        Args:
            texts: which they are, of shape (n,).
            owner: each token's word, counted within its text, -1 for none; shape (n, tokens).
            attention: of shape (n, tokens).
        """
        owned = owner >= 0
        np.add.at(self.cls, (self.word_starts[texts, None] + owner)[owned], attention[owned])

    def add_anchors(self, texts: np.ndarray, owner: np.ndarray, attention: np.ndarray) -> None:
        """Add the mean over each anchor's wordpieces to its text's words.

        Args:
            texts: which they are, of shape (n,).
            owner: as in `add_cls`.
            attention: rows of the pieces of these texts' anchors, one anchor after the other, of
                shape (pieces, tokens).
        """
        counts = self.anchor_starts[texts + 1] - self.anchor_starts[texts]
        anchors = ragged(self.anchor_starts[texts], counts)
        text = np.repeat(np.arange(len(texts)), counts)
        pieces = self._piece_counts[anchors]
        anchors, text, pieces = anchors[pieces > 0], text[pieces > 0], pieces[pieces > 0]
        if not len(anchors):
            return
        first = np.cumsum(pieces) - pieces
        means = np.add.reduceat(attention, first, axis=0) / pieces[:, None].astype(np.float32)
        owned = owner[text] >= 0
        places = self.row_starts[anchors, None] + owner[text]
        np.add.at(self.rows, places[owned], means[owned])
