"""Rows of a table looked up by id, from a memory map."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from filelock import FileLock

from .copies import TableCopy, damaged_copies, remove_copies
from .manifest import listed_files, read_manifest, table_files
from .parquet import ShardFile

__all__ = ["MappedTable", "open_table", "verify_tables"]

logger = logging.getLogger(__name__)


class MappedTable:
    """A Parquet table with an ``id`` column, as an uncompressed memory-mapped copy.

    The copy and its index (16 bytes a row) are made once, in a stream, and shared by all
    processes. Where an id stands twice the first row counts.

    Args:
        stem: path of a finished copy, without its ending.
    """

    def __init__(self, stem: Path) -> None:
        self._stem = stem
        copy = TableCopy(stem)
        self._table = pa.ipc.open_file(pa.memory_map(str(copy.arrow))).read_all()
        # A plain array of the same memory: each access to a `memmap` costs microseconds more.
        self._ids, self._rows = np.asarray(np.load(copy.index, mmap_mode="r"))

    @classmethod
    def of(
        cls,
        files: list[ShardFile],
        cache: Path,
        columns: list[str] | None = None,
        *,
        verify: bool = True,
    ) -> MappedTable:
        """Open the copy of a table, which is made where it is missing or damaged.

        Args:
            files: of the table, in order.
            cache: where the copy goes: ``<cache>-<content>`` with the endings ``.arrow``, ``.npy``
                and ``.json``, which holds their checksums.
            columns: which to copy; None for all.
            verify: compare the checksums of a copy that is there, else only its sizes.

        Raises:
            HarpError: a file of the table is damaged.
        """
        content = hashlib.sha256(" ".join(file.sha256 for file in files).encode()).hexdigest()
        stem = cache.with_name(f"{cache.name}-{content[:16]}")
        copy = TableCopy(stem)
        if not copy.is_whole(verify=verify):
            cache.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(cache.with_name(f"{cache.name}.lock")):
                if not copy.is_whole(verify=True):
                    remove_copies(cache)
                    copy.make(files, columns)
        return cls(stem)

    def __reduce__(self):
        return MappedTable, (self._stem,)

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def ids(self) -> np.ndarray:
        """All ids, ascending, int64 of shape (rows,)."""
        return self._ids

    def __contains__(self, id: int) -> bool:
        place = int(self._ids.searchsorted(id))
        return place < len(self._ids) and int(self._ids[place]) == id

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
        if not len(self._ids):
            return np.full(len(ids), -1)
        places = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        return np.where(self._ids[places] == ids, self._rows[places], -1)

    def take(self, rows: np.ndarray, column: str) -> pa.Array:
        """Read one column's values in several rows."""
        return self._table.column(column).take(pa.array(rows)).combine_chunks()

    def _row(self, id: int) -> int:
        place = int(self._ids.searchsorted(id))
        if place == len(self._ids) or int(self._ids[place]) != id:
            raise KeyError(id)
        return int(self._rows[place])


def open_table(
    directory: Path,
    stage: str,
    table: str,
    columns: list[str] | None = None,
    *,
    verify: bool = True,
) -> MappedTable:
    """Open a table of a finished stage of a build folder for look-ups by id.

    Args:
        directory: the folder of the build.
        stage: the stage's name.
        table: the table's name.
        columns: which to look up; None for all.
        verify: as in `MappedTable.of`; with it, the files of the table are checked as well, by
            their size and number of rows.

    Raises:
        HarpError: the stage is unfinished, or a file of the table is missing or damaged.
    """
    find = table_files if verify else listed_files
    cache = directory / "mapped" / "-".join([stage, table, *(columns or [])])
    return MappedTable.of(find(directory / stage, table), cache, columns, verify=verify)


def verify_tables(directory: Path, stages: Iterable[str]) -> None:
    """Check all tables of the named stages by their sizes, and the whole content of their copies.

    What opens the tables afterwards, here or in another process, need not verify them.

    Raises:
        HarpError: a stage is unfinished, or a file of it is missing or damaged.
    """
    for stage in stages:
        files = read_manifest(directory / stage)["files"]
        for table in sorted({name.rpartition("/")[0] for name in files}):
            table_files(directory / stage, table)
    for path in damaged_copies(directory / "mapped"):
        logger.warning("%s is damaged or missing: the copy is made anew", path)
        TableCopy(path.with_suffix("")).record.unlink(missing_ok=True)
