"""Parquet shards: written whole or not at all, with checksums, and checked when they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import HarpError
from ..files.hashes import file_hash
from ..files.writing import whole_file

ROW_GROUP_SIZE = 16384
REMEDY = "delete this file and run `harp build` again, which makes it anew"


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
        return cls(path, rows, path.stat().st_size, file_hash(path))

    @classmethod
    def listed(cls, path: Path, entry: Mapping[str, Any]) -> ShardFile:
        """A file by its entry in a manifest."""
        return cls(path, entry["rows"], entry["bytes"], entry["sha256"])

    @property
    def entry(self) -> dict[str, Any]:
        """What a manifest says of the file."""
        return {"bytes": self.size, "rows": self.rows, "sha256": self.sha256}

    @property
    def has_size(self) -> bool:
        """Whether the file is there with its size."""
        return self.path.is_file() and self.path.stat().st_size == self.size

    @property
    def is_whole(self) -> bool:
        """Whether the file's whole content is as it was written."""
        return self.has_size and file_hash(self.path) == self.sha256

    def check(self, *, whole: bool) -> None:
        """Check the file's whole content, or else its size and its number of rows.

        Raises:
            HarpError: it is missing or damaged.
        """
        if not self.path.exists():
            raise HarpError(f"{self.path} is missing: run `harp build` again, which makes it anew")
        if not self.has_size:
            raise HarpError(f"{self.path} has another size than its manifest says: {REMEDY}")
        if whole and not self.is_whole:
            raise HarpError(f"{self.path} is damaged (its checksum is wrong): {REMEDY}")
        if self.path.suffix == ".parquet" and read_row_count(self.path) != self.rows:
            raise HarpError(f"{self.path} has another number of rows than it should: {REMEDY}")


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
    """The Parquet files of a folder, in order.

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
    with _readable(path), pq.ParquetFile(path, page_checksum_verification=True) as file:
        yield from file.iter_batches(size, columns=columns)


def read_schema(path: Path) -> pa.Schema:
    """The schema of a Parquet file.

    Raises:
        HarpError: the file is damaged.
    """
    with _readable(path):
        return pq.read_schema(path)


def read_row_count(path: Path) -> int:
    """How many rows the footer of a Parquet file tells.

    Raises:
        HarpError: the file is damaged.
    """
    with _readable(path):
        return pq.read_metadata(path).num_rows


def read_table(folder: Path, columns: list[str] | None = None) -> pa.Table:
    """Read all Parquet files of a folder into memory, in order.

    Raises:
        HarpError: there is none, or one is damaged.
    """
    tables = []
    for path in parquet_files(folder):
        with _readable(path):
            tables.append(pq.read_table(path, columns=columns, page_checksum_verification=True))
    return pa.concat_tables(tables)


def table_bytes(folder: Path) -> int:
    """Size of a table on disk, in bytes."""
    return sum(path.stat().st_size for path in folder.glob("*.parquet"))


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise HarpError(f"{path} is damaged ({type(error).__name__}): {REMEDY}") from error
