"""DuckDB in this process: out of core under a memory cap."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .options import EngineOptions, memory_bytes
from .sink import ROWS_PER_CHUNK

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa


class Embedded:
    """Runs Ibis expressions on DuckDB, with its database and what it spills in ``scratch``."""

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
        """Make Parquet shards known as a table."""
        return self.connection.read_parquet([str(file) for file in files], table_name=name)

    def keep(self, name: str, expression: ir.Table) -> ir.Table:
        """Compute a table once and keep it in the database."""
        return self.connection.create_table(f"kept_{name}", expression)

    def rows(self, expression: ir.Table) -> list[dict[str, Any]]:
        """A small result as dictionaries."""
        return expression.to_pyarrow().to_pylist()

    def sorted(self, expression: ir.Table, order: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        """Stream a large result, sorted."""
        query = self.connection.compile(expression.order_by(*order))
        yield from self.connection.con.sql(query).to_arrow_reader(ROWS_PER_CHUNK)
