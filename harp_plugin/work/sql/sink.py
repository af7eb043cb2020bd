"""Writes sorted rows as Parquet shards, whose bytes do not depend on an engine's batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path

import pyarrow as pa

from ..parquet import ROW_GROUP_SIZE, ShardFile, write_table

__all__ = ["ROWS_PER_CHUNK", "even_chunks", "plain_schema", "write_sorted"]

ROWS_PER_CHUNK = 4 * ROW_GROUP_SIZE
_CHUNKS_PER_FILE = 16


def write_sorted(
    folder: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> list[ShardFile]:
    """Write sorted rows to ``part-00000.parquet`` and so on, about a million rows to each file.

    Returns:
        The files.
    """
    for stale in folder.glob("part-*.parquet"):
        stale.unlink()
    schema = plain_schema(schema)
    chunks = even_chunks((batch.cast(schema) for batch in batches), schema)
    files: list[ShardFile] = []
    while (first := next(chunks, None)) is not None or not files:
        rows = [] if first is None else chain([first], islice(chunks, _CHUNKS_PER_FILE - 1))
        files.append(write_table(folder / f"part-{len(files):05d}.parquet", schema, rows))
    return files


def even_chunks(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, size: int = ROWS_PER_CHUNK
) -> Iterator[pa.RecordBatch]:
    """Stream the same rows in batches of ``size`` rows; the last batch may be shorter."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        while batch.num_rows:
            head = batch.slice(0, size - rows)
            batch = batch.slice(head.num_rows)
            waiting.append(head)
            rows += head.num_rows
            if rows == size:
                yield _joined(waiting, schema)
                waiting, rows = [], 0
    if waiting:
        yield _joined(waiting, schema)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the same columns, all nullable, as engines differ in which columns may be null."""
    return pa.schema([(field.name, _plain(field.type)) for field in schema])


def _plain(type: pa.DataType) -> pa.DataType:
    return pa.list_(_plain(type.value_type)) if pa.types.is_list(type) else type


def _joined(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    return pa.Table.from_batches(batches, schema).combine_chunks().to_batches()[0]
