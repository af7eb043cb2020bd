"""The tables of the weights stage."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from .weighed_texts import WeighedTexts
from .words import LONGEST, TextWords, starts_of

__all__ = [
    "PAGE_ATTENTION",
    "TABLES",
    "TEXT_WEIGHTS",
    "anchor_batch",
    "attention_batch",
    "beyond_storage",
    "read_attention",
    "text_batch",
]

_OFFSETS = pa.list_(pa.uint16())
_WEIGHTS = pa.list_(pa.float16())
TEXT_WEIGHTS = pa.schema(
    [("id", pa.int64()), ("starts", _OFFSETS), ("ends", _OFFSETS), ("weights", _WEIGHTS)]
)
TABLES = {
    "sentence_weights": TEXT_WEIGHTS,
    "page_weights": TEXT_WEIGHTS,
    "anchor_weights": pa.schema(
        [("id", pa.int64()), ("weights", _WEIGHTS), ("layer_before", pa.float16())]
    ),
}
PAGE_ATTENTION = pa.schema(
    [
        ("id", pa.int64()),
        ("starts", _OFFSETS),
        ("ends", _OFFSETS),
        ("weights", pa.list_(pa.float32())),
        ("cut", pa.bool_()),
    ]
)


def text_batch(ids: np.ndarray, weighed: WeighedTexts) -> pa.RecordBatch:
    """Make rows of `TEXT_WEIGHTS` of texts: the weights of [CLS]."""
    columns = _text_columns(weighed, np.float16)
    return pa.RecordBatch.from_arrays([pa.array(ids), *columns], schema=TEXT_WEIGHTS)


def beyond_storage(weighed: WeighedTexts) -> np.ndarray:
    """Find which texts have words that `text_batch` leaves out, bool of shape (texts,)."""
    beyond = np.zeros(len(weighed), dtype=bool)
    words = weighed.words
    beyond[words.word_texts[words.spans[:, 1] > LONGEST]] = True
    return beyond


def attention_batch(ids: np.ndarray, weighed: WeighedTexts) -> pa.RecordBatch:
    """Make rows of `PAGE_ATTENTION` of texts: the same, not rounded."""
    columns = [pa.array(ids), *_text_columns(weighed, np.float32), pa.array(weighed.words.cut)]
    return pa.RecordBatch.from_arrays(columns, schema=PAGE_ATTENTION)


def read_attention(rows: pa.Table) -> WeighedTexts:
    """Make weighed texts of the rows that `attention_batch` made."""
    starts, ends, weights = (
        rows.column(name).combine_chunks() for name in ("starts", "ends", "weights")
    )
    spans = np.stack([starts.flatten().to_numpy(), ends.flatten().to_numpy()], axis=1)
    words = TextWords(
        spans.astype(np.int64),
        starts_of(starts.value_lengths().to_numpy()),
        np.zeros((0, 2), dtype=np.int64),
        np.zeros(rows.num_rows + 1, dtype=np.int64),
        np.zeros(0, dtype=bool),
        rows.column("cut").to_numpy(),
    )
    row_starts, no_rows = np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.float32)
    return WeighedTexts(words, weights.flatten().to_numpy(), row_starts, no_rows, no_rows)


def _text_columns(weighed: WeighedTexts, kind: type) -> list[pa.Array]:
    spans = weighed.words.spans
    fits = spans[:, 1] <= LONGEST
    offsets = _lists(weighed.words.starts, fits)
    lists = ((spans[:, 0], np.uint16), (spans[:, 1], np.uint16), (weighed.cls, kind))
    return [
        pa.ListArray.from_arrays(offsets, pa.array(values[fits].astype(kind)))
        for values, kind in lists
    ]


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
