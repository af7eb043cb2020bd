"""Runs Ibis expressions on DuckDB; tables beyond the memory limit go to disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .options import EngineOptions, memory_bytes
from .sink import ROWS_PER_CHUNK

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

__all__ = ["Embedded"]


class Embedded:
    """Runs Ibis expressions on DuckDB.

    Args:
        scratch: an empty folder for the database and for tables beyond the memory limit.
        options: the memory limit.
        workers: the number of threads.
    """

    def __init__(self, scratch: Path, options: EngineOptions, workers: int) -> None:
        import ibis

        self.connection = ibis.duckdb.connect(
            scratch / "work.duckdb",
            memory_limit=f"{memory_bytes(options.memory)}B",
            threads=workers,
            temp_directory=str(scratch / "spilled"),
            preserve_insertion_order=False,
        )

    def __enter__(self) -> Embedded:
        return self

    def __exit__(self, *error: Any) -> None:
        self.connection.disconnect()

    def read(self, name: str, files: list[Path]) -> ir.Table:
        """Return Parquet shards as a table of this name."""
        return self.connection.read_parquet([str(file) for file in files], table_name=name)

    def store(self, name: str, expression: ir.Table) -> ir.Table:
        """Compute a table and store it in the database."""
        return self.connection.create_table(f"stored_{name}", expression)

    def rows(self, expression: ir.Table) -> list[dict[str, Any]]:
        """Return a small result as dictionaries."""
        return expression.to_pyarrow().to_pylist()

    def sorted(self, expression: ir.Table, order: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        """Stream a large result in order."""
        query = self.connection.compile(expression.order_by(*order))
        yield from self.connection.con.sql(query).to_arrow_reader(ROWS_PER_CHUNK)
