"""Runs relational steps in a child process and writes their tables as shards of a stage."""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pyarrow as pa
from tqdm import tqdm

from ...errors import HarpError
from ..artifact import MANIFEST
from ..manifest import table_files
from ..parquet import ShardFile, parquet_files, write_table
from ..processes import UNGUARDED, importing_once, start_worker
from ..stage import Stage
from ..writing import TEMPORARY
from .engine import ROWS_PER_CHUNK, Embedded, EngineOptions

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from .spark import Spark

__all__ = ["PACKAGES", "Step", "Tables", "even_chunks", "run_steps", "write_sorted"]

Tables = Mapping[str, "ir.Table"]
"""Tables of expressions by name."""

PACKAGES = ("ibis-framework", "duckdb", "pyspark", "pyarrow")
_CHUNKS_PER_FILE = 16
_DISK_SIGNS = ("No space left", "max_temp_directory_size", "File too large")
_MEMORY_SIGNS = ("OutOfMemory", "Out of Memory")


class Step(NamedTuple):
    """One step of a stage, which computes a table.

    Attributes:
        name: the name of the table, under which other steps use it.
        expression: makes the Ibis expression from the other tables.
        kind: ``table`` for a table in the folder of the stage, ``temporary`` for a table that only
            other steps use, ``drops`` for rows (reason, count) of the manifest, and ``counts`` for
            rows (name, count) that `run_steps` returns.
        order: the columns by which a table is sorted; no two rows may agree in all of them.
    """

    name: str
    expression: Callable[[Tables], ir.Table]
    kind: Literal["table", "temporary", "drops", "counts"] = "table"
    order: tuple[str, ...] = ("id",)


def run_steps(
    stage: Stage,
    sources: Mapping[str, Path],
    steps: Sequence[Step],
    engine: EngineOptions | None = None,
    *,
    workers: int = 1,
    quiet: bool = True,
) -> dict[str, int]:
    """Run steps in order and write their tables as shards of ``stage``.

    A child process does the work, so that a lack of memory ends the child and not the caller. The
    bytes are the same for any engine, any memory and any number of workers.

    Args:
        stage: a started stage; its finished tables are not computed again.
        sources: folders of Parquet shards by table name.
        steps: the steps; their expressions must be picklable (functions of a module, or partials of
            such functions).
        engine: the engine and its memory limit.
        workers: the number of threads of the engine.
        quiet: whether to show no progress bar.

    Returns:
        The rows of all steps of the kind ``counts``.

    Raises:
        HarpError: the child was killed, or a step failed.
    """
    engine = engine or EngineOptions()
    receiver, sender = multiprocessing.Pipe(duplex=False)
    child = _context(engine).Process(
        target=_child, args=(sender, stage, dict(sources), list(steps), engine, workers)
    )
    child.start()
    sender.close()
    try:
        name = stage.folder.name.removesuffix(TEMPORARY)
        result = _watch(receiver, len(steps), name, quiet)
    except BaseException:
        child.terminate()
        raise
    finally:
        child.join()
    if result is None:
        raise HarpError(
            f"{stage.folder.name}: the database process ended with status {child.exitcode}: memory "
            f"or disk ran out (run again with a lower --memory), or {UNGUARDED}"
        )
    if isinstance(result, str):
        raise HarpError(result)
    return result


def _context(engine: EngineOptions) -> Any:
    """Return what starts the child: for DuckDB a server that imports it once for all stages."""
    if engine.is_spark:
        return multiprocessing.get_context("spawn")  # Java is looked for where it is now
    return importing_once("ibis.backends.duckdb", __name__)


def _watch(receiver: Connection, steps: int, name: str, quiet: bool) -> dict[str, int] | str | None:
    """Show progress until the child sends its counts or an error message.

    Returns:
        What the child sent last; None where it ended without a message.
    """
    with tqdm(total=steps, unit="step", desc=name, disable=quiet) as bar:
        try:
            while isinstance(message := receiver.recv(), int):
                bar.update(message)
        except EOFError:
            return None
        return message


def _child(
    sender: Connection,
    stage: Stage,
    sources: dict[str, Path],
    steps: list[Step],
    options: EngineOptions,
    workers: int,
) -> None:
    start_worker()
    result: dict[str, int] | str
    try:
        with tempfile.TemporaryDirectory(
            suffix=TEMPORARY, dir=stage.folder, ignore_cleanup_errors=True
        ) as scratch:
            size = sum(f.stat().st_size for folder in sources.values() for f in folder.glob("*"))
            with closing(_start_engine(Path(scratch), options, workers, size)) as engine:
                result = _Run(engine, stage, sources, steps).run(lambda: sender.send(1))
    except HarpError as error:
        result = str(error)
    except Exception as error:
        result = _error_message(error, stage, options)
    sender.send(result)
    sender.close()


def _start_engine(
    scratch: Path, options: EngineOptions, workers: int, size: int
) -> Embedded | Spark:
    if options.is_spark:
        from .spark import Spark

        return Spark(scratch, options, workers, size)
    return Embedded(scratch, options, workers)


def _error_message(error: Exception, stage: Stage, options: EngineOptions) -> str:
    """Return one line about an error; both engines report a lack of memory by words only."""
    name, kind = stage.folder.name, type(error).__name__
    reason = " ".join(str(error).split())
    if any(sign in reason for sign in _DISK_SIGNS):
        return f"{name}: no disk space left in {stage.folder}: free some and run again"
    if isinstance(error, MemoryError) or any(sign in f"{kind} {reason}" for sign in _MEMORY_SIGNS):
        return f"{name}: --memory {options.memory} does not suffice: give more, or fewer --workers"
    return f"{name}: {kind}: {reason[:300]}"


def _source_files(folder: Path) -> list[Path]:
    """Return the files of a table; for a finished stage, compare their sizes."""
    if not (folder.parent / MANIFEST).is_file():
        return parquet_files(folder)
    return [file.path for file in table_files(folder.parent, folder.name)]


class _Run(dict[str, "ir.Table"]):
    """The tables of a run by name; a table is computed when it is used for the first time."""

    def __init__(
        self, engine: Embedded | Spark, stage: Stage, sources: dict[str, Path], steps: list[Step]
    ) -> None:
        super().__init__()
        self.engine = engine
        self.stage = stage
        self.sources = sources
        self.steps = {step.name: step for step in steps}
        self.counts: dict[str, int] = {}

    def __missing__(self, name: str) -> ir.Table:
        self[name] = self._table(name)
        return self[name]

    def run(self, done: Callable[[], None]) -> dict[str, int]:
        """Run every step that is not finished, call ``done`` after each, and return the counts."""
        for step in self.steps.values():
            if step.kind == "table":
                self[step.name]
            elif step.kind == "drops" and not self.stage.shard_done(step.name):
                rows = self.engine.rows(step.expression(self))
                drops = {row["reason"]: int(row["count"]) for row in rows if row["count"]}
                self.stage.finish_shard(step.name, {}, drops)
            elif step.kind == "counts":
                rows = self.engine.rows(step.expression(self))
                self.counts |= {row["name"]: int(row["count"]) for row in rows}
            done()
        return self.counts

    def _table(self, name: str) -> ir.Table:
        if name in self.sources:
            return self.engine.read(name, _source_files(self.sources[name]))
        step = self.steps[name]
        if step.kind == "temporary":
            return self.engine.store(name, step.expression(self))
        folder = self.stage.folder / name
        if not self.stage.shard_done(name):
            expression = step.expression(self)
            batches = self.engine.sorted(expression, step.order)
            files = write_sorted(folder, expression.schema().to_pyarrow(), batches)
            rows = sum(file.rows for file in files)
            self.stage.finish_shard(name, {name: rows}, {}, files)
        return self.engine.read(name, parquet_files(folder))


def write_sorted(
    folder: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> list[ShardFile]:
    """Write sorted rows to ``part-00000.parquet`` and so on, about a million rows to each file.

    Returns:
        The files.
    """
    for stale in folder.glob("part-*.parquet"):
        stale.unlink()
    # All columns can be null, as engines differ in which of them may be.
    schema = pa.schema([(field.name, _plain(field.type)) for field in schema])
    chunks = even_chunks((batch.cast(schema) for batch in batches), schema)
    files: list[ShardFile] = []
    while (first := next(chunks, None)) is not None or not files:
        rows = [] if first is None else chain([first], islice(chunks, _CHUNKS_PER_FILE - 1))
        files.append(write_table(folder / f"part-{len(files):05d}.parquet", schema, rows))
    return files


def even_chunks(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, size: int = ROWS_PER_CHUNK
) -> Iterator[pa.RecordBatch]:
    """Stream the same rows in batches of ``size`` rows; the last batch may be shorter."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        while batch.num_rows:
            head = batch.slice(0, size - rows)
            batch = batch.slice(head.num_rows)
            waiting.append(head)
            rows += head.num_rows
            if rows == size:
                yield _joined(waiting, schema)
                waiting, rows = [], 0
    if waiting:
        yield _joined(waiting, schema)


def _plain(type: pa.DataType) -> pa.DataType:
    return pa.list_(_plain(type.value_type)) if pa.types.is_list(type) else type


def _joined(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    return pa.Table.from_batches(batches, schema).combine_chunks().to_batches()[0]
