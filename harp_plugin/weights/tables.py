"""The tables of the weights stage."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from .texts import WeighedTexts
from .tokens import ragged

_OFFSETS = pa.list_(pa.uint16())
_WEIGHTS = pa.list_(pa.float16())
TEXT_WEIGHTS = pa.schema(
    [("id", pa.int64()), ("starts", _OFFSETS), ("ends", _OFFSETS), ("weights", _WEIGHTS)]
)
TABLES = {
    "sentence_weights": TEXT_WEIGHTS,
    "page_weights": TEXT_WEIGHTS,
    "anchor_weights": pa.schema([("id", pa.int64()), ("weights", _WEIGHTS)]),
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
LONGEST = 65535
"""Characters of a text in which words can be stored."""


def text_batch(ids: np.ndarray, weighed: WeighedTexts) -> pa.RecordBatch:
    """[CLS]'s weights of texts, as rows of `TEXT_WEIGHTS`."""
    columns = _text_columns(weighed, np.float16)
    return pa.RecordBatch.from_arrays([pa.array(ids), *columns], schema=TEXT_WEIGHTS)


def beyond_storage(weighed: WeighedTexts) -> np.ndarray:
    """Whether a text has words that `text_batch` leaves out, bool of shape (texts,)."""
    beyond = np.zeros(len(weighed), dtype=bool)
    text = np.repeat(np.arange(len(weighed)), np.diff(weighed.word_starts))
    beyond[text[weighed.spans[:, 1] > LONGEST]] = True
    return beyond


def attention_batch(ids: np.ndarray, weighed: WeighedTexts) -> pa.RecordBatch:
    """The same, not rounded, as rows of `PAGE_ATTENTION`."""
    columns = [pa.array(ids), *_text_columns(weighed, np.float32), pa.array(weighed.cut)]
    return pa.RecordBatch.from_arrays(columns, schema=PAGE_ATTENTION)


def read_attention(rows: pa.Table) -> WeighedTexts:
    """What `attention_batch` wrote."""
    starts, ends, weights = (
        rows.column(name).combine_chunks() for name in ("starts", "ends", "weights")
    )
    spans = np.stack([starts.flatten().to_numpy(), ends.flatten().to_numpy()], axis=1)
    none = np.zeros(0, dtype=np.int64)
    return WeighedTexts(
        spans.astype(np.int64),
        np.concatenate([[0], np.cumsum(starts.value_lengths().to_numpy())]).astype(np.int64),
        weights.flatten().to_numpy(),
        np.zeros(rows.num_rows + 1, dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        np.zeros(0, dtype=np.float32),
        rows.column("cut").to_numpy(),
        none,
    )


def _text_columns(weighed: WeighedTexts, kind: type) -> list[pa.Array]:
    fits = weighed.spans[:, 1] <= LONGEST
    offsets = _lists(weighed.word_starts, fits)
    lists = (
        (weighed.spans[:, 0], np.uint16),
        (weighed.spans[:, 1], np.uint16),
        (weighed.cls, kind),
    )
    return [
        pa.ListArray.from_arrays(offsets, pa.array(values[fits].astype(kind)))
        for values, kind in lists
    ]


def anchor_batch(ids: np.ndarray, weighed: WeighedTexts) -> pa.RecordBatch:
    """Rows of the anchors that are known, over the words that `text_batch` keeps."""
    text = np.repeat(np.arange(len(weighed)), np.diff(weighed.anchor_starts))
    widths = np.diff(weighed.row_starts)
    word = ragged(weighed.word_starts[text], widths)
    kept = np.repeat(weighed.known, widths) & (weighed.spans[word, 1] <= LONGEST)
    known = np.append(weighed.known, True)
    offsets = pa.array(_lists(weighed.row_starts, kept).to_numpy()[known])
    values = pa.array(weighed.rows[kept].astype(np.float16))
    column = pa.ListArray.from_arrays(offsets, values)
    schema = TABLES["anchor_weights"]
    return pa.RecordBatch.from_arrays([pa.array(ids[weighed.known]), column], schema=schema)


def _lists(starts: np.ndarray, kept: np.ndarray) -> pa.Array:
    """Offsets of lists of which only some elements are kept."""
    before = np.concatenate([[0], np.cumsum(kept)])
    return pa.array(before[starts].astype(np.int32))
