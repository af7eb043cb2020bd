"""Parquet shards: written whole or not at all, with checksums, and checked when they are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pandas  # noqa: F401  (pyarrow would import it from C, and drop a Ctrl-C meanwhile)
import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import HarpError
from .records import changed_file, describe_file
from .writing import whole, write_text

__all__ = [
    "ROW_GROUP_SIZE",
    "ShardFile",
    "parquet_files",
    "read_batches",
    "read_schema",
    "schema_of",
    "write_lines",
    "write_table",
]

ROW_GROUP_SIZE = 16384
"""Rows of a row group in the tables of a build."""
_BUILD = "run `harp build` again, which makes it again"
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
    def from_path(cls, path: Path, rows: int) -> ShardFile:
        """Measure a file that has just been written."""
        return cls(path, rows, **describe_file(path))

    @property
    def entry(self) -> dict[str, Any]:
        """What a record of a stage lists of the file."""
        return {"rows": self.rows, "size": self.size, "sha256": self.sha256}

    def check(self) -> None:
        """Compare the file's size with what was written.

        Raises:
            HarpError: it is missing or has changed.
        """
        if damage := changed_file(self.path.parent, {self.path.name: self.entry}, whole=False):
            raise HarpError(f"{damage}: {_DELETE_AND_BUILD if self.path.exists() else _BUILD}")


def schema_of(columns: str, **types: pa.DataType) -> pa.Schema:
    """Make a schema of names and types, such as ``id int64, keys string[]``, with further types."""
    fields = []
    for column in columns.split(", "):
        name, kind = column.split(" ")
        item = kind.removesuffix("[]")
        type = types.get(item) or pa.type_for_alias(item)
        fields.append((name, pa.list_(type) if kind.endswith("[]") else type))
    return pa.schema(fields)


def write_table(path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> ShardFile:
    """Write record batches whole or not at all, each page with its checksum.

    Raises:
        HarpError: the disk gives back something else than was written.
    """
    rows = 0
    with whole(path) as temporary:
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
    return ShardFile.from_path(path, rows)


def write_lines(path: Path, lines: Sequence[str]) -> ShardFile:
    """Write a text file whole or not at all, of lines that have their ends."""
    write_text(path, "".join(lines))
    return ShardFile.from_path(path, len(lines))


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


@contextmanager
def _refuse_unreadable(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        raise HarpError(
            f"{path} is damaged ({type(error).__name__}): {_DELETE_AND_BUILD}"
        ) from error
