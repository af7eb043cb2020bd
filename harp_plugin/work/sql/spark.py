"""Runs Ibis expressions and functions of shards on Apache Spark, a cluster or a local master."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from ...errors import HarpError
from ..processes import R, S, results_in_order
from .engine import ROWS_PER_CHUNK, EngineOptions, memory_bytes

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Spark", "spark_map"]

_BYTES_PER_PARTITION = 16_000_000
_SETTINGS = {
    "spark.app.name": "harp",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}


class Spark:
    """Runs Ibis expressions on Spark.

    All nodes of a cluster must see the output folder under the same path.

    Args:
        scratch: an empty folder for stored tables.
        options: the master, and the memory of the driver (local masters) or of each executor.
        workers: the number of threads of the master ``local[*]``.
        size: the size of the sources in bytes, which sets the number of partitions.

    Raises:
        HarpError: PySpark or Java is missing, or Spark does not start.
    """

    def __init__(self, scratch: Path, options: EngineOptions, workers: int, size: int) -> None:
        self.scratch = scratch
        settings = {
            "spark.local.dir": str(scratch / "spilled"),
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
            "spark.sql.shuffle.partitions": str(8 + size // _BYTES_PER_PARTITION),
        }
        self.session = _start(scratch, options, workers, settings)
        import ibis

        self.connection = ibis.pyspark.connect(self.session)

    def close(self) -> None:
        """Stop Spark."""
        self.session.stop()

    def read(self, name: str, files: list[Path]) -> ir.Table:
        """Return Parquet shards as a table of this name."""
        self.session.read.parquet(*map(str, files)).createOrReplaceTempView(name)
        return self.connection.table(name)

    def store(self, name: str, expression: ir.Table) -> ir.Table:
        """Compute a table and store it as Parquet."""
        self._write(name, self._frame(expression)).createOrReplaceTempView(f"stored_{name}")
        return self.connection.table(f"stored_{name}")

    def rows(self, expression: ir.Table) -> list[dict[str, Any]]:
        """Return a small result as dictionaries."""
        return [row.asDict() for row in self._frame(expression).collect()]

    def sorted(self, expression: ir.Table, order: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        """Stream a large result in order; Spark writes it to one file for each range."""
        rows = self._write("unsorted", self._frame(expression))
        self._write("sorted", rows.orderBy(*order))
        for file in sorted((self.scratch / "sorted").glob("part-*.parquet")):
            yield from pq.ParquetFile(file).iter_batches(ROWS_PER_CHUNK)

    def _frame(self, expression: ir.Table) -> DataFrame:
        return self.session.sql(self.connection.compile(expression))

    def _write(self, name: str, rows: DataFrame) -> DataFrame:
        folder = str(self.scratch / name)
        rows.write.parquet(folder, mode="overwrite")
        return self.session.read.parquet(folder)


def spark_map(
    fn: Callable[[S], R], shards: Iterable[S], options: EngineOptions, workers: int
) -> Iterator[R]:
    """Apply ``fn`` to every shard, in order, in the executors of Spark.

    Where an executor is lost, Spark computes its shards in flight again. All nodes see the folders
    of the shards under the same path, and have this package (``PYSPARK_PYTHON`` names their Python,
    if it is not that of this process).

    Args:
        fn: a picklable function.
        shards: the shards, read lazily.
        options: the master, and the memory of the driver (local masters) or of each executor.
        workers: how many shards are computed at once, at least; as many as there are cores, if
            there are more.

    Raises:
        HarpError: PySpark or Java is missing, Spark does not start, or ``fn`` raises an error or
            ends its process again and again.
    """
    with _own_errors(), tempfile.TemporaryDirectory() as scratch:
        session = _start(Path(scratch), options, workers)
    context, guarded = session.sparkContext, partial(_guarded, fn, Path.cwd())

    def compute(shard: S) -> R:
        try:
            (result,) = context.parallelize([shard], 1).map(guarded).collect()
        except Exception as error:
            raise HarpError(f"Spark: {_reason(error)} (finished shards are kept)") from error
        if isinstance(result, HarpError):
            raise result
        return result

    at_once = max(workers, context.defaultParallelism)
    threads = ThreadPoolExecutor(2 * at_once)
    try:
        yield from results_in_order(
            lambda shard: threads.submit(compute, shard), shards, 2 * at_once
        )
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
        session.stop()


def _guarded(fn: Callable[[Any], Any], folder: Path, shard: Any) -> Any:
    """Call a function in an executor, where relative paths are those of ``folder``.

    An error of ours is returned, so that it keeps its one line on the way back.
    """
    with suppress(OSError):  # there may be no such folder, where all paths are absolute
        os.chdir(folder)
    try:
        return fn(shard)
    except HarpError as error:
        return error


def _reason(error: Exception) -> str:
    """Return the line in which Python names the error of an executor, or the first of Java's."""
    lines = [line.strip() for line in str(error).split("\n") if line.strip()]
    named = (line for line in lines if re.match(r"[\w.]+(Error|Exception): ", line))
    return next((line for line in named if "org.apache" not in line), lines[0])[:300]


def _start(
    scratch: Path, options: EngineOptions, workers: int, more: dict[str, str] | None = None
) -> SparkSession:
    """Start a session; what Spark writes to the error output goes to a file."""
    local = options.spark_master.startswith("local")
    settings: dict[str, Any] = {
        **_SETTINGS,
        f"spark.{'driver' if local else 'executor'}.memory": _heap(options.memory),
        **(more or {}),
    }
    if local:
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    # PySpark would take the first python3 of PATH, which need not have this package.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    sys.stderr.flush()
    with (scratch / "spark.log").open("wb") as log:
        os.dup2(log.fileno(), 2)
    try:
        from pyspark.errors import PySparkRuntimeError
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise HarpError(
            f"--engine spark needs PySpark ({error}): pip install harp_plugin[spark]"
        ) from error
    master = options.spark_master.replace("[*]", f"[{workers}]")
    builder = SparkSession.builder.master(master).config(map=settings)
    try:
        return builder.getOrCreate()
    except (PySparkRuntimeError, OSError) as error:
        lines = (scratch / "spark.log").read_text(errors="replace").split("\n")
        reason = next((line.strip() for line in lines if line.strip()), str(error))
        raise HarpError(
            f"Spark does not start ({reason[:200]}): install Java 17 or newer, such as "
            "openjdk-17-jre-headless, and name it by JAVA_HOME; or use --engine duckdb"
        ) from error


@contextmanager
def _own_errors() -> Iterator[None]:
    """Give this process its error output back at the end of the block."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)


def _heap(memory: str) -> str:
    """Return the size of Java's heap: three quarters of the limit, and at least 512 MiB.

    Java needs the other quarter for itself, and does not start with a smaller heap.
    """
    return f"{max(512, memory_bytes(memory) * 3 // 4 >> 20)}m"
