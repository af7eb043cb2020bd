"""Runs relational steps, written as Ibis expressions, on embedded DuckDB in a child process."""

from __future__ import annotations

import multiprocessing
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from .errors import HarpError
from .storage import Stage, parquet_files, write_table

if TYPE_CHECKING:
    import ibis
    import ibis.expr.types as ir

    Tables = Mapping[str, ir.Table]

_ROWS_PER_BUCKET = 1_000_000


@dataclass
class EngineOptions:
    """How relational work is run. None of it changes a byte of the result."""

    memory: str = field(
        default="4GB",
        metadata={"help": "Memory cap of relational work, such as 1GB; beyond it, it spills."},
    )


class Step(NamedTuple):
    """One named result of relational work.

    Attributes:
        name: of the table; later steps see it under this name.
        expression: makes the Ibis expression from the tables known so far.
        kind: ``table`` is written to the stage's folder, sorted by ``id``; ``temporary`` is kept
            for later steps only; ``drops`` holds rows (reason, count) for the manifest.
    """

    name: str
    expression: Callable[[Tables], ir.Table]
    kind: Literal["table", "temporary", "drops"] = "table"


def run_steps(
    stage: Stage,
    sources: Mapping[str, Path],
    steps: Sequence[Step],
    *,
    memory: str = "4GB",
    workers: int = 1,
) -> None:
    """Run steps in order and write their tables as shards of ``stage``.

    The work is done in a child process, so that running out of memory ends a step and not the
    caller. The same bytes for any memory and any number of workers.

    Args:
        stage: a started stage; finished tables are kept.
        sources: folders of Parquet shards by table name.
        steps: expressions must be picklable (module-level functions, or partials of them).
        memory: DuckDB's memory limit.
        workers: DuckDB's threads.

    Raises:
        HarpError: the child was killed, or a step failed.
    """
    receiver, sender = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("spawn").Process(
        target=_child, args=(sender, stage, dict(sources), list(steps), memory, workers)
    )
    child.start()
    sender.close()
    try:
        failure = receiver.recv()
    except EOFError:
        failure = None
    except BaseException:
        child.terminate()
        raise
    finally:
        child.join()
    if failure:
        raise HarpError(failure)
    if failure is None:
        raise HarpError(
            f"{stage.folder.name}: the database process ended with status {child.exitcode}, "
            "most often for want of memory: run again with a lower --memory or more disk"
        )


def _child(sender, stage: Stage, sources, steps: list[Step], memory: str, workers: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which ends the child
    failure = ""
    try:
        with tempfile.TemporaryDirectory(suffix=".tmp", dir=stage.folder) as scratch:
            _run(Path(scratch), stage, sources, steps, memory, workers)
    except HarpError as error:
        failure = str(error)
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        failure = f"{stage.folder.name}: {type(error).__name__}: {reason}"
    sender.send(failure)
    sender.close()


def _run(scratch: Path, stage: Stage, sources, steps, memory: str, workers: int) -> None:
    import ibis

    connection = ibis.duckdb.connect(
        scratch / "work.duckdb",
        memory_limit=memory,
        threads=workers,
        temp_directory=str(scratch),
        preserve_insertion_order=False,
    )
    tables = {name: _read(connection, name, folder) for name, folder in sources.items()}
    for step in steps:
        if step.kind == "table" and stage.shard_done(step.name):
            tables[step.name] = _read(connection, step.name, stage.folder / step.name)
            continue
        result = connection.create_table(f"result_{step.name}", step.expression(tables))
        tables[step.name] = result
        if step.kind == "table":
            rows = _write_buckets(result, stage.folder / step.name)
            stage.finish_shard(step.name, {step.name: rows}, {})
        elif step.kind == "drops":
            reasons = result.to_pyarrow().to_pylist()
            drops = {row["reason"]: row["count"] for row in reasons}
            stage.finish_shard(step.name, {}, drops)
    connection.disconnect()


def _read(connection: ibis.BaseBackend, name: str, folder: Path) -> ir.Table:
    return connection.read_parquet([str(path) for path in parquet_files(folder)], table_name=name)


def _write_buckets(result: ir.Table, folder: Path) -> int:
    buckets = 1 + int(result.count().to_pyarrow().as_py()) // _ROWS_PER_BUCKET
    rows = 0
    for bucket in range(buckets):
        inside = result.filter(result.id % buckets == bucket).order_by("id").to_pyarrow()
        path = folder / f"part-{bucket:05d}.parquet"
        rows += write_table(path, inside.schema, inside.to_batches())
    return rows
