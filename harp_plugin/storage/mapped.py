"""Rows of a table looked up by id, from a memory map."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock

from .parquet import parquet_files
from .stage import read_manifest


class MappedTable:
    """A Parquet table with an ``id`` column, as an uncompressed memory-mapped copy.

    The copy and its index (16 bytes a row) are made once, in a stream, and shared by all
    processes. Where an id stands twice the first row counts.

    Args:
        folder: the shards of the table.
        cache: where the copy goes: ``<cache>.arrow`` and ``<cache>.npy``.
        fingerprint: of the stage that wrote the table; a copy of another one is replaced.
        columns: which to copy; None for all.
    """

    def __init__(
        self, folder: Path, cache: Path, fingerprint: str, columns: list[str] | None = None
    ) -> None:
        self._arguments = (folder, cache, fingerprint, columns)
        stem = cache.with_name(f"{cache.name}-{fingerprint[:12]}")
        arrow, index = stem.with_suffix(".arrow"), stem.with_suffix(".npy")
        if not index.is_file():
            cache.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(cache.with_name(f"{cache.name}.lock")):
                if not index.is_file():
                    _clear(cache)
                    _copy(parquet_files(folder), arrow, columns)
                    _write_index(arrow, index)
        self._table = pa.ipc.open_file(pa.memory_map(str(arrow))).read_all()
        self._ids, self._rows = np.load(index, mmap_mode="r")

    def __reduce__(self):
        return MappedTable, self._arguments

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def ids(self) -> np.ndarray:
        """All ids, ascending, int64 of shape (rows,)."""
        return self._ids

    def __contains__(self, id: int) -> bool:
        place = int(np.searchsorted(self._ids, id))
        return place < len(self._ids) and int(self._ids[place]) == id

    def get(self, id: int, column: str) -> Any:
        """The value of one column in the row with this id.

        Raises:
            KeyError: no row has this id.
        """
        return self._table.column(column)[self._row(id)].as_py()

    def array(self, id: int, column: str) -> np.ndarray:
        """A list column's value as a NumPy array, without a Python object per element."""
        values = self._table.column(column)[self._row(id)].values
        return values.to_numpy(zero_copy_only=False)

    def rows(self, ids: np.ndarray) -> np.ndarray:
        """The row of each id, to be given to `take`; -1 where no row has it."""
        if not len(self._ids):
            return np.full(len(ids), -1)
        places = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        return np.where(self._ids[places] == ids, self._rows[places], -1)

    def take(self, rows: np.ndarray, column: str) -> pa.Array:
        """One column's values in some rows."""
        return self._table.column(column).take(pa.array(rows)).combine_chunks()

    def _row(self, id: int) -> int:
        place = int(np.searchsorted(self._ids, id))
        if place == len(self._ids) or int(self._ids[place]) != id:
            raise KeyError(id)
        return int(self._rows[place])


def open_table(
    directory: Path, stage: str, table: str, columns: list[str] | None = None
) -> MappedTable:
    """Open a table of a finished stage of a build folder for look-ups by id.

    Raises:
        HarpError: the stage is unfinished.
    """
    folder = directory / stage
    fingerprint = read_manifest(folder)["fingerprint"]
    name = "-".join([stage, table, *(columns or [])])
    return MappedTable(folder / table, directory / "mapped" / name, fingerprint, columns)


def _clear(cache: Path) -> None:
    """Remove copies of other fingerprints, and what a killed process left."""
    ours = re.compile(re.escape(cache.name) + r"-[^-.]+\.(arrow|npy)(\..*)?")
    for path in cache.parent.iterdir():
        if ours.fullmatch(path.name):
            path.unlink(missing_ok=True)


def _copy(files: list[Path], target: Path, columns: list[str] | None) -> None:
    temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    schema = pq.read_schema(files[0])
    if columns is not None:
        schema = pa.schema([schema.field(name) for name in columns])
    with pa.ipc.new_file(temporary, schema) as writer:
        for file in files:
            for batch in pq.ParquetFile(file).iter_batches(columns=columns):
                writer.write_batch(batch)
    temporary.replace(target)


def _write_index(arrow: Path, target: Path) -> None:
    ids = pa.ipc.open_file(pa.memory_map(str(arrow))).read_all().column("id").to_numpy()
    order = np.argsort(ids, kind="stable")
    temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    with temporary.open("wb") as file:
        np.save(file, np.stack([ids[order], order]))
    temporary.replace(target)
