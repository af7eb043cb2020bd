"""Parquet shards: written whole or not at all, with checksums, and checked when they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pandas  # noqa: F401  (pyarrow would import it from C, and drop a Ctrl-C meanwhile)
import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import HarpError
from .hashes import describe_file, file_damage, listed_size
from .writing import whole_file

__all__ = [
    "ROW_GROUP_SIZE",
    "ShardFile",
    "parquet_files",
    "read_batches",
    "read_row_count",
    "read_schema",
    "read_table",
    "table_bytes",
    "write_table",
]

ROW_GROUP_SIZE = 16384
"""Rows of a row group in the tables of a build."""
_BUILD = "run `harp build` again, which makes it anew"
_DELETE_AND_BUILD = f"delete this file and {_BUILD}"


class ShardFile(NamedTuple):
    """A file of a shard, as it was written.

    Attributes:
        path: where it lies.
        rows: number of its rows.
        size: in bytes.
        sha256: of its content.
    """

    path: Path
    rows: int
    size: int
    sha256: str

    @classmethod
    def of(cls, path: Path, rows: int) -> ShardFile:
        """Measure a file that has just been written."""
        return cls(path, rows, **describe_file(path))

    @classmethod
    def listed(cls, path: Path, entry: Mapping[str, Any]) -> ShardFile:
        """Take a file as a record of a stage lists it."""
        return cls(path, entry["rows"], listed_size(entry), entry["sha256"])

    @property
    def entry(self) -> dict[str, Any]:
        """What a record of a stage lists of the file."""
        return {"rows": self.rows, "size": self.size, "sha256": self.sha256}

    def damage(self, *, whole: bool) -> str | None:
        """Compare the file with what was written, by its whole content or else by its size.

        Returns:
            What is wrong with the file, with its path; None if nothing is.
        """
        return file_damage(self.path, self.entry, whole=whole)

    def check(self, *, whole: bool) -> None:
        """Check the file's number of rows, and its whole content or else its size.

        Raises:
            HarpError: it is missing or damaged.
        """
        if damage := self.damage(whole=whole):
            remedy = _DELETE_AND_BUILD if self.path.exists() else _BUILD
            raise HarpError(f"{damage}: {remedy}")
        if self.path.suffix == ".parquet" and read_row_count(self.path) != self.rows:
            raise HarpError(
                f"{self.path} has another number of rows than it should: {_DELETE_AND_BUILD}"
            )


def write_table(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> ShardFile:
    """Write record batches whole or not at all, each page with its checksum.

    Raises:
        HarpError: the disk gives back something else than was written.
    """
    rows = 0
    with whole_file(path) as temporary:
        with pq.ParquetWriter(
            temporary, schema, compression="zstd", write_page_checksum=True
        ) as writer:
            for batch in batches:
                writer.write_table(
                    pa.Table.from_batches([batch]).cast(schema), row_group_size=ROW_GROUP_SIZE
                )
                rows += batch.num_rows
        if pq.read_metadata(temporary).num_rows != rows:
            raise HarpError(f"{path} is damaged after writing: check the disk and run again")
    return ShardFile.of(path, rows)


def parquet_files(folder: Path) -> list[Path]:
    """List the Parquet files of a folder, in order.

    Raises:
        HarpError: there is none.
    """
    files = sorted(folder.glob("*.parquet"))
    if not files:
        raise HarpError(f"no table in {folder}: run `harp build` first")
    return files


def read_batches(
    path: Path, columns: list[str] | None = None, size: int = 1 << 16
) -> Iterator[pa.RecordBatch]:
    """Stream the rows of a Parquet file; the checksum of every page is verified.

    Raises:
        HarpError: the file is damaged.
    """
    with _refuse_unreadable(path), pq.ParquetFile(path, page_checksum_verification=True) as file:
        yield from file.iter_batches(size, columns=columns)


def read_schema(path: Path) -> pa.Schema:
    """Read the schema of a Parquet file.

    Raises:
        HarpError: the file is damaged.
    """
    with _refuse_unreadable(path):
        return pq.read_schema(path)


def read_row_count(path: Path) -> int:
    """Read the number of rows from the footer of a Parquet file.

    Raises:
        HarpError: the file is damaged.
    """
    with _refuse_unreadable(path):
        return pq.read_metadata(path).num_rows


def read_table(folder: Path, columns: list[str] | None = None) -> pa.Table:
    """Read all Parquet files of a folder into memory, in order.

    Raises:
        HarpError: there is none, or one is damaged.
    """
    tables = []
    for path in parquet_files(folder):
        with _refuse_unreadable(path):
            tables.append(pq.read_table(path, columns=columns, page_checksum_verification=True))
    return pa.concat_tables(tables)


def table_bytes(folder: Path) -> int:
    """Sum up the size of a table on disk, in bytes."""
    return sum(path.stat().st_size for path in folder.glob("*.parquet"))


@contextmanager
def _refuse_unreadable(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        raise HarpError(
            f"{path} is damaged ({type(error).__name__}): {_DELETE_AND_BUILD}"
        ) from error
