"""Runs relational steps in a child process and writes their tables as shards of a stage."""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from tqdm import tqdm

from ..errors import HarpError
from ..files.writing import TEMPORARY
from ..processes import start_worker
from ..storage import Stage, parquet_files, table_files
from ..storage.stage import MANIFEST
from .options import EngineOptions
from .sink import write_sorted

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

Tables = Mapping[str, "ir.Table"]

PACKAGES = ("ibis-framework", "duckdb", "pyspark", "pyarrow")
_DISK_SIGNS = ("No space left", "max_temp_directory_size", "File too large")
_MEMORY_SIGNS = ("OutOfMemory", "Out of Memory")


class Step(NamedTuple):
    """One named result of relational work.

    Attributes:
        name: of the table; later steps see it under this name.
        expression: makes the Ibis expression from the tables known so far.
        kind: ``table`` is written to the stage's folder; ``temporary`` is kept for later steps
            only, and made when one of them asks for it; ``drops`` holds rows (reason, count) for
            the manifest, and ``counts`` rows (name, count) that `run_steps` returns.
        order: columns by which a table is sorted; together they must be distinct.
    """

    name: str
    expression: Callable[[Tables], ir.Table]
    kind: Literal["table", "temporary", "drops", "counts"] = "table"
    order: tuple[str, ...] = ("id",)


class Engine(Protocol):
    """What runs Ibis expressions. It is a context manager, closed at the end of a stage."""

    def __enter__(self) -> Engine: ...

    def __exit__(self, *error: Any) -> None: ...

    def read(self, name: str, files: list[Path]) -> ir.Table:
        """Make Parquet shards known as a table."""

    def keep(self, name: str, expression: ir.Table) -> ir.Table:
        """Compute a table once and keep it in the scratch folder."""

    def rows(self, expression: ir.Table) -> list[dict[str, Any]]:
        """A small result as dictionaries."""

    def sorted(self, expression: ir.Table, order: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        """Stream a large result, sorted."""


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

    The work is done in a child process, so that running out of memory ends a step and not the
    caller. The same bytes for any engine, any memory and any number of workers.

    Args:
        stage: a started stage; finished tables are kept.
        sources: folders of Parquet shards by table name.
        steps: expressions must be picklable (module-level functions, or partials of them).
        engine: which engine, under what memory cap.
        workers: the engine's threads.
        quiet: show no progress bar.

    Returns:
        The counts of all steps of that kind.

    Raises:
        HarpError: the child was killed, or a step failed.
    """
    engine = engine or EngineOptions()
    receiver, sender = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("spawn").Process(
        target=_child, args=(sender, stage, dict(sources), list(steps), engine, workers)
    )
    child.start()
    sender.close()
    try:
        result = _follow(receiver, len(steps), stage.folder.name, quiet)
    except BaseException:
        child.terminate()
        raise
    finally:
        child.join()
    if result is None:
        raise HarpError(
            f"{stage.folder.name}: the database process ended with status {child.exitcode}, "
            "most often for want of memory: run again with a lower --memory or more disk"
        )
    if isinstance(result, str):
        raise HarpError(result)
    return result


def _follow(
    receiver: Connection, steps: int, name: str, quiet: bool
) -> dict[str, int] | str | None:
    """Show progress until the child sends its counts or a message; None where it just ends."""
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
            with _engine(Path(scratch), options, workers, size) as engine:
                result = _Run(engine, stage, sources, steps).all(lambda: sender.send(1))
    except HarpError as error:
        result = str(error)
    except Exception as error:
        result = _message(error, stage, options)
    sender.send(result)
    sender.close()


def _engine(scratch: Path, options: EngineOptions, workers: int, size: int) -> Engine:
    if options.engine == "spark":
        from .spark import Spark

        return Spark(scratch, options, workers, size)
    from .embedded import Embedded

    return Embedded(scratch, options, workers)


def _message(error: Exception, stage: Stage, options: EngineOptions) -> str:
    """One line on what went wrong; both engines give away their limits in words only."""
    name, kind = stage.folder.name, type(error).__name__
    reason = " ".join(str(error).split())
    if any(sign in reason for sign in _DISK_SIGNS):
        return f"{name}: no disk space left in {stage.folder}: free some and run again"
    if isinstance(error, MemoryError) or any(sign in f"{kind} {reason}" for sign in _MEMORY_SIGNS):
        return f"{name}: --memory {options.memory} does not suffice: give more, or fewer --workers"
    return f"{name}: {kind}: {reason[:300]}"


def _source_files(folder: Path) -> list[Path]:
    """The files of a table; those of a finished stage are compared with their checksums."""
    if not (folder.parent / MANIFEST).is_file():
        return parquet_files(folder)
    return [file.path for file in table_files(folder.parent, folder.name, whole=True)]


class _Run(Mapping[str, "ir.Table"]):
    """The tables of a run by name; what is temporary is computed when it is first asked for."""

    def __init__(
        self, engine: Engine, stage: Stage, sources: dict[str, Path], steps: list[Step]
    ) -> None:
        self.engine = engine
        self.stage = stage
        self.sources = sources
        self.steps = {step.name: step for step in steps}
        self.known: dict[str, ir.Table] = {}
        self.counts: dict[str, int] = {}

    def __getitem__(self, name: str) -> ir.Table:
        if name not in self.known:
            self.known[name] = self._table(name)
        return self.known[name]

    def __iter__(self) -> Iterator[str]:
        return iter([*self.sources, *self.steps])

    def __len__(self) -> int:
        return len(self.sources) + len(self.steps)

    def all(self, done: Callable[[], None]) -> dict[str, int]:
        """Run every step that the stage needs."""
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
            return self.engine.keep(name, step.expression(self))
        folder = self.stage.folder / name
        if not self.stage.shard_done(name):
            expression = step.expression(self)
            batches = self.engine.sorted(expression, step.order)
            files = write_sorted(folder, expression.schema().to_pyarrow(), batches)
            rows = sum(file.rows for file in files)
            self.stage.finish_shard(name, {name: rows}, {}, files)
        return self.engine.read(name, parquet_files(folder))
