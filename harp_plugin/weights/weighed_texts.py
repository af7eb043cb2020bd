"""Weights of many texts' words, as flat arrays and as the tables of the weights stage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ..work.parquet import schema_of
from .words import LONGEST, TextWords, ragged, starts_of

__all__ = [
    "TABLES",
    "TEXT_WEIGHTS",
    "WeighedTexts",
    "anchor_batch",
    "beyond_storage",
    "text_batch",
]

TEXT_WEIGHTS = schema_of("id int64, starts uint16[], ends uint16[], weights float16[]")
TABLES = {
    "sentence_weights": TEXT_WEIGHTS,
    "page_weights": TEXT_WEIGHTS,
    "anchor_weights": schema_of("id int64, weights float16[], layer_before float16"),
}


@dataclass(frozen=True, slots=True)
class WeighedTexts:
    """Weights of texts, one text after the other.

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
        indexes = self.row_starts[anchors, None] + owner[text]
        np.add.at(self.rows, indexes[owned], means[owned])


def text_batch(ids: np.ndarray, weighed: WeighedTexts) -> pa.RecordBatch:
    """Make rows of `TEXT_WEIGHTS` of texts: the weights of [CLS]."""
    spans = weighed.words.spans
    fits = spans[:, 1] <= LONGEST
    offsets = _lists(weighed.words.starts, fits)
    lists = ((spans[:, 0], np.uint16), (spans[:, 1], np.uint16), (weighed.cls, np.float16))
    columns = [
        pa.ListArray.from_arrays(offsets, pa.array(values[fits].astype(kind)))
        for values, kind in lists
    ]
    return pa.RecordBatch.from_arrays([pa.array(ids), *columns], schema=TEXT_WEIGHTS)


def beyond_storage(weighed: WeighedTexts) -> np.ndarray:
    """Find which texts have words that `text_batch` leaves out, bool of shape (texts,)."""
    beyond = np.zeros(len(weighed), dtype=bool)
    words = weighed.words
    beyond[words.word_texts[words.spans[:, 1] > LONGEST]] = True
    return beyond


def anchor_batch(ids: np.ndarray, weighed: WeighedTexts) -> pa.RecordBatch:
    """Make rows of the anchors inside their texts, over the words that `text_batch` keeps."""
    inside = weighed.words.anchor_inside
    widths = np.diff(weighed.row_starts)
    kept = np.repeat(inside, widths) & (weighed.words.spans[weighed.row_words, 1] <= LONGEST)
    offsets = pa.array(_lists(weighed.row_starts, kept).to_numpy()[np.append(inside, True)])
    values = pa.array(weighed.rows[kept].astype(np.float16))
    column = pa.ListArray.from_arrays(offsets, values)
    before = weighed.layer_before[inside].astype(np.float16)
    layer_before = pa.array(before, mask=np.isnan(before))
    columns = [pa.array(ids[inside]), column, layer_before]
    return pa.RecordBatch.from_arrays(columns, schema=TABLES["anchor_weights"])


def _lists(starts: np.ndarray, kept: np.ndarray) -> pa.Array:
    """Return the offsets of lists of which only the kept elements remain."""
    before = np.concatenate([[0], np.cumsum(kept)])
    return pa.array(before[starts].astype(np.int32))
