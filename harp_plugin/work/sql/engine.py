"""The engine of relational work: its options, and DuckDB. Tables beyond the limit go to disk."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import HarpError
from ...options import Options, option

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

__all__ = ["ROWS_PER_CHUNK", "Embedded", "EngineOptions", "memory_bytes"]

ROWS_PER_CHUNK = 4 * 16384
"""Rows of the batches in which a large result is streamed: four row groups of a table."""
_MEMORY = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


@dataclass
class EngineOptions(Options):
    """The engine that computes tables; no option changes a byte of the result.

    Attributes:
        memory: Memory limit of the engine, such as 1GB; larger tables go to disk.
        engine: duckdb runs on this machine; spark on a cluster that sees the output folder.
        spark_master: Master of Spark, such as spark://host:7077; local[*] uses --workers threads.

    Raises:
        HarpError: the engine is unknown, or the memory is not a size.
    """

    memory: str = "4GB"
    engine: str = option("duckdb", choices=["duckdb", "spark"])
    spark_master: str = "local[*]"

    @property
    def is_spark(self) -> bool:
        """Whether Spark computes."""
        return self.engine == "spark"

    def __post_init__(self) -> None:
        super().__post_init__()
        memory_bytes(self.memory)


def memory_bytes(size: str) -> int:
    """Return the bytes of a size such as ``4GB`` (GB = 10^9) or ``512MiB`` (MiB = 2^20).

    Raises:
        HarpError: it is not a size, or it is zero.
    """
    match = _MEMORY.fullmatch(size.strip())
    if not match or not float(match[1]):
        raise HarpError(f"--memory {size}: give a number with its unit, such as 512MB or 4GB")
    base = 1024 if match[3] else 1000
    return int(float(match[1]) * base ** _POWERS[match[2].lower()])


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

    def close(self) -> None:
        """Close the database."""
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
