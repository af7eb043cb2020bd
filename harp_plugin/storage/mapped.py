"""Rows of a table looked up by id, from a memory map."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from filelock import FileLock

from ..errors import HarpError
from ..files.hashes import file_hash
from ..files.records import read_record, write_record
from ..files.writing import whole_file
from .parquet import ShardFile, read_batches, read_schema
from .stage import listed_files, read_manifest, table_files

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
        copy = _Copy(stem)
        self._table = pa.ipc.open_file(pa.memory_map(str(copy.arrow))).read_all()
        self._ids, self._rows = np.load(copy.index, mmap_mode="r")

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
        copy = _Copy(stem)
        if not copy.is_whole(verify):
            cache.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(cache.with_name(f"{cache.name}.lock")):
                if not copy.is_whole(verify=True):
                    _remove_copies(cache)
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
    """Check all tables of some stages by their sizes, and whole copies of them that are there.

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
        _Copy(path.with_suffix("")).record.unlink(missing_ok=True)


def damaged_copies(folder: Path) -> Iterator[Path]:
    """The files of memory-mapped copies in a folder that are not as they were made."""
    for arrow in sorted(folder.glob("*.arrow")):
        copy = _Copy(arrow.with_suffix(""))
        if copy.record.is_file():
            yield from copy.damages(verify=True)
    for record in sorted(folder.glob("*.json")):
        copy = _Copy(record.with_suffix(""))
        if not copy.arrow.is_file():
            yield copy.arrow


class _Copy:
    """The files of a memory-mapped copy.

    Args:
        stem: their path without an ending.
    """

    def __init__(self, stem: Path) -> None:
        self.arrow = stem.with_name(f"{stem.name}.arrow")
        self.index = stem.with_name(f"{stem.name}.npy")
        self.record = stem.with_name(f"{stem.name}.json")

    def is_whole(self, verify: bool) -> bool:
        """Whether the copy is there, as it was made."""
        if not self.record.is_file():
            return False
        for path in self.damages(verify):
            logger.warning("%s is damaged or missing: the copy is made anew", path)
            return False
        return True

    def damages(self, verify: bool) -> Iterator[Path]:
        """Its files that are damaged or missing."""
        try:
            written = read_record(self.record)
        except HarpError:
            yield self.record
            return
        for path in (self.arrow, self.index):
            file = written[path.suffix]
            has_size = path.is_file() and path.stat().st_size == file["bytes"]
            if not has_size or (verify and _hash_once(path) != file["sha256"]):
                yield path

    def make(self, files: list[ShardFile], columns: list[str] | None) -> None:
        """Copy a table and write the index of its ids, then their checksums."""
        with whole_file(self.arrow) as temporary:
            _copy(files, temporary, columns)
        with whole_file(self.index) as temporary:
            _write_index(self.arrow, temporary)
        paths = (self.arrow, self.index)
        write_record(
            self.record,
            {p.suffix: {"bytes": p.stat().st_size, "sha256": file_hash(p)} for p in paths},
        )


def _hash_once(path: Path) -> str:
    """The hash of a file, which this process reads again only if the file changes."""
    status = path.stat()
    return _hash_of(path, status.st_size, status.st_mtime_ns, status.st_ino)


@lru_cache(maxsize=256)
def _hash_of(path: Path, *_status: int) -> str:
    return file_hash(path)


def _remove_copies(cache: Path) -> None:
    """Remove copies of other content, and what a killed process left."""
    ours = re.compile(re.escape(cache.name) + r"-[^-.]+\.(arrow|npy|json)(\..*)?")
    for path in cache.parent.iterdir():
        if ours.fullmatch(path.name):
            path.unlink(missing_ok=True)


def _copy(files: list[ShardFile], target: Path, columns: list[str] | None) -> None:
    schema = read_schema(files[0].path)
    if columns is not None:
        schema = pa.schema([schema.field(name) for name in columns])
    with pa.ipc.new_file(target, schema) as writer:
        for file in files:
            file.check(whole=True)
            for batch in read_batches(file.path, columns):
                writer.write_batch(batch)


def _write_index(arrow: Path, target: Path) -> None:
    ids = pa.ipc.open_file(pa.memory_map(str(arrow))).read_all().column("id").to_numpy()
    order = np.argsort(ids, kind="stable")
    with target.open("wb") as file:
        np.save(file, np.stack([ids[order], order]))
