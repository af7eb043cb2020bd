"""Uncompressed copies of tables, which can be mapped into memory."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from ..errors import HarpError
from .hashes import describe_file, file_damage, file_hash
from .parquet import ShardFile, read_batches, read_schema
from .records import read_record, write_record
from .writing import whole_file

__all__ = ["TableCopy", "damaged_copies", "remove_copies"]

logger = logging.getLogger(__name__)


class TableCopy:
    """A copy of a table and the index of its ids, with a record of both.

    Args:
        stem: path of the files without their endings: ``.arrow`` for the copy, ``.npy`` for the
            index, ``.json`` for the record of their sizes and hashes.
    """

    def __init__(self, stem: Path) -> None:
        self.arrow = stem.with_name(f"{stem.name}.arrow")
        self.index = stem.with_name(f"{stem.name}.npy")
        self.record = stem.with_name(f"{stem.name}.json")

    def is_whole(self, *, verify: bool) -> bool:
        """Tell whether the copy is there, as it was made; damage is logged.

        Args:
            verify: compare the checksums, else only the sizes.
        """
        if not self.record.is_file():
            return False
        for path in self.damaged_files(verify=verify):
            logger.warning("%s is damaged or missing: the copy is made anew", path)
            return False
        return True

    def damaged_files(self, *, verify: bool) -> Iterator[Path]:
        """Find the files of the copy that are damaged or missing."""
        try:
            record = read_record(self.record)
        except HarpError:
            yield self.record
            return
        for path in (self.arrow, self.index):
            if file_damage(path, record[path.suffix], whole=verify, hash_file=_hash_once):
                yield path

    def make(self, files: list[ShardFile], columns: list[str] | None) -> None:
        """Copy a table and write the index of its ids, then the record.

        Args:
            files: of the table, in order.
            columns: which to copy; None for all.

        Raises:
            HarpError: a file of the table is damaged.
        """
        with whole_file(self.arrow) as temporary:
            _copy(files, temporary, columns)
        with whole_file(self.index) as temporary:
            _write_index(self.arrow, temporary)
        write_record(
            self.record, {path.suffix: describe_file(path) for path in (self.arrow, self.index)}
        )


def damaged_copies(folder: Path) -> Iterator[Path]:
    """Find the files of copies in a folder that are not as they were made."""
    for arrow in sorted(folder.glob("*.arrow")):
        copy = TableCopy(arrow.with_suffix(""))
        if copy.record.is_file():
            yield from copy.damaged_files(verify=True)
    for record in sorted(folder.glob("*.json")):
        copy = TableCopy(record.with_suffix(""))
        if not copy.arrow.is_file():
            yield copy.arrow


def remove_copies(cache: Path) -> None:
    """Remove all copies of a table, and what killed processes left of them.

    Args:
        cache: path of the copies without ``-<content>`` and the endings.
    """
    name = re.compile(re.escape(cache.name) + r"-[^-.]+\.(arrow|npy|json)(\..*)?")
    for path in cache.parent.iterdir():
        if name.fullmatch(path.name):
            path.unlink(missing_ok=True)


def _hash_once(path: Path) -> str:
    """Compute the hash of a file, which this process reads again only if the file changes."""
    status = path.stat()
    return _hash_at(path, status.st_size, status.st_mtime_ns, status.st_ino)


@lru_cache(maxsize=256)
def _hash_at(path: Path, *_status: int) -> str:
    return file_hash(path)


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
