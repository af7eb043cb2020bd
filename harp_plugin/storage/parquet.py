"""Parquet shards, written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import HarpError

ROW_GROUP_SIZE = 16384


def write_table(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    """Write record batches under a temporary name, check the footer, then rename.

    Returns:
        The number of rows written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    rows = 0
    with pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_table(
                pa.Table.from_batches([batch]).cast(schema), row_group_size=ROW_GROUP_SIZE
            )
            rows += batch.num_rows
    if pq.read_metadata(temporary).num_rows != rows:
        raise HarpError(f"{temporary} is damaged after writing: check the disk and run again")
    temporary.replace(path)
    return rows


def parquet_files(folder: Path) -> list[Path]:
    """The shards of a table, in order.

    Raises:
        HarpError: there is none.
    """
    files = sorted(folder.glob("*.parquet"))
    if not files:
        raise HarpError(f"no table in {folder}: run `harp build` first")
    return files


def read_table(folder: Path, columns: list[str] | None = None) -> pa.Table:
    """Read all shards of a table into memory, in order."""
    return pa.concat_tables(
        [pq.read_table(path, columns=columns) for path in parquet_files(folder)]
    )


def table_bytes(folder: Path) -> int:
    """Size of a table on disk, in bytes."""
    return sum(path.stat().st_size for path in folder.glob("*.parquet"))
