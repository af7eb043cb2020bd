"""Rows of a table looked up by id, from a memory map."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from .artifact import Artifact, OverwriteRules, Provenance
from .manifest import read_manifest, table_files
from .parquet import ShardFile, read_batches, read_schema

__all__ = ["MappedTable", "lazy_table", "open_table", "verify_tables"]

_TABLE, _INDEX = "table.arrow", "index.npy"


class MappedTable:
    """A Parquet table with an ``id`` column, as an uncompressed memory-mapped copy.

    The copy and its index (16 bytes a row) are made once, in a stream, and shared by all
    processes. Of rows with the same id the first counts.

    Args:
        folder: holds a finished copy.

    Attributes:
        ids: all ids, ascending, int64 of shape (rows,).
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._table = pa.ipc.open_file(pa.memory_map(str(folder / _TABLE))).read_all()
        # A plain array of the same memory: each access to a `memmap` costs microseconds more.
        self.ids, self._rows = np.asarray(np.load(folder / _INDEX, mmap_mode="r"))

    @classmethod
    def from_files(
        cls, files: list[ShardFile], cache: Path, columns: list[str] | None = None
    ) -> MappedTable:
        """Open the copy of a table, which is made where it is missing, damaged or of another table.

        Args:
            files: of the table, in order.
            cache: folder for the copy.
            columns: which to copy; None for all.

        Raises:
            HarpError: a file of the table is damaged.
        """
        content = hashlib.sha256(" ".join(file.sha256 for file in files).encode()).hexdigest()
        provenance = Provenance({"columns": columns}, {}, {"table": content})
        copy = Artifact(cache, "copy of a table", provenance, OverwriteRules(overwrite=True))
        copy.make(lambda temporary: _copy(files, temporary, columns))
        return cls(cache)

    def __reduce__(self):
        return MappedTable, (self._folder,)

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, id: int) -> bool:
        row = int(self.ids.searchsorted(id))
        return row < len(self.ids) and int(self.ids[row]) == id

    def get(self, id: int, column: str) -> Any:
        """Read the value of one column in the row with this id.

        Raises:
            KeyError: no row has this id.
        """
        return self._table.column(column)[self._row(id)].as_py()

    def values(self, id: int, columns: Iterable[str]) -> list[Any]:
        """Read the values of several columns in the row with this id, as `get` reads one."""
        row = self._row(id)
        return [self._table.column(column)[row].as_py() for column in columns]

    def array(self, id: int, column: str) -> np.ndarray:
        """Read a list column's value as a NumPy array, without a Python object per element."""
        values = self._table.column(column)[self._row(id)].values
        return values.to_numpy(zero_copy_only=False)

    def rows(self, ids: np.ndarray) -> np.ndarray:
        """Look up the row of each id, which `take` needs; -1 where no row has the id."""
        if not len(self.ids):
            return np.full(len(ids), -1)
        indices = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[indices] == ids, self._rows[indices], -1)

    def take(self, rows: np.ndarray, column: str) -> pa.Array:
        """Read one column's values in several rows."""
        return self._table.column(column).take(pa.array(rows)).combine_chunks()

    def columns(self, ids: np.ndarray, *names: str) -> list[pa.Array]:
        """Read the values of columns in the rows with these ids, each of which has a row."""
        rows = self.rows(ids)
        return [self.take(rows, name) for name in names]

    def _row(self, id: int) -> int:
        row = int(self.ids.searchsorted(id))
        if row == len(self.ids) or int(self.ids[row]) != id:
            raise KeyError(id)
        return int(self._rows[row])


def open_table(
    directory: Path, stage: str, table: str, columns: list[str] | None = None
) -> MappedTable:
    """Open a table of a finished stage of a build folder for look-ups by id.

    Args:
        directory: the folder of the build.
        stage: the stage's name.
        table: the table's name.
        columns: which to look up; None for all.

    Raises:
        HarpError: the stage is unfinished, or a file of the table is missing or damaged.
    """
    cache = directory / "mapped" / "-".join([stage, table, *(columns or [])])
    return MappedTable.from_files(table_files(directory / stage, table), cache, columns)


def lazy_table(stage: str, table: str, *columns: str) -> cached_property[MappedTable]:
    """Return a table of an object with the ``directory`` of a build; it is opened when first read.

    The arguments are those of `open_table`.
    """
    return cached_property(lambda o: open_table(o.directory, stage, table, list(columns) or None))


def verify_tables(directory: Path, stages: Iterable[str]) -> None:
    """Check all tables of the named stages by their sizes, before work that opens them later.

    Raises:
        HarpError: a stage is unfinished, or a file of it is missing or damaged.
    """
    for stage in stages:
        files = read_manifest(directory / stage)["files"]
        for table in sorted({name.rpartition("/")[0] for name in files}):
            table_files(directory / stage, table)


def _copy(files: list[ShardFile], folder: Path, columns: list[str] | None) -> None:
    """Write the copy of a table, and then the index of its ids."""
    schema = read_schema(files[0].path)
    if columns is not None:
        schema = pa.schema([schema.field(name) for name in columns])
    with pa.ipc.new_file(folder / _TABLE, schema) as writer:
        for file in files:
            file.check()
            for batch in read_batches(file.path, columns):
                writer.write_batch(batch)
    table = pa.ipc.open_file(pa.memory_map(str(folder / _TABLE))).read_all()
    ids = table.column("id").to_numpy()
    order = np.argsort(ids, kind="stable")
    np.save(folder / _INDEX, np.stack([ids[order], order]))
