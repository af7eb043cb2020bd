"""The examples of every task, as tables of ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import HarpError
from ..work.build_stage import BuildRequest, BuildStage, StageOptions
from ..work.manifest import read_manifest
from ..work.sql.steps import PACKAGES, Step, run_steps
from ..work.stage import Stage
from .registry import TASKS, ExampleOptions

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from ..work.sql.steps import Tables

__all__ = ["CORPUS_TABLES", "GRAPH_TABLES", "build_examples"]

CORPUS_TABLES = ("pages", "sentences", "sections")
GRAPH_TABLES = (
    *("anchors", "sentence_anchors", "page_links", "documents"),
    *("anchor_texts", "ambiguous_texts", "see_also"),
)


def _options(request: BuildRequest) -> StageOptions:
    tasks = request.of(ExampleOptions).tasks
    for task in tasks:
        _ = TASKS[task]
    return StageOptions({"tasks": list(tasks)}, packages=PACKAGES)


def _list_examples(stage: Stage, request: BuildRequest) -> dict[str, Any]:
    """Write the ids of the examples of each task.

    Raises:
        HarpError: a task is unknown, or none has an example.
    """
    tasks, tables = request.of(ExampleOptions).tasks, _tables(request.directory)
    if not read_manifest(request.directory / "graph")["rows"]["anchors"]:
        _check_tasks_without_links(stage, tasks, request)
    steps = [Step(name, TASKS[name].examples) for name in tasks]
    run_steps(stage, tables, steps, request.engine, workers=request.workers, quiet=request.quiet)
    return {}


def _check_tasks_without_links(stage: Stage, tasks: Sequence[str], request: BuildRequest) -> None:
    """Check that a corpus without links has examples of tasks.

    Raises:
        HarpError: a task has none; the message names the tasks that have some.
    """
    step = Step("counts", partial(_example_counts, tasks=tuple(TASKS)), "counts")
    tables, workers = _tables(request.directory), request.workers
    counts = run_steps(stage, tables, [step], request.engine, workers=workers)
    if not (without := [task for task in tasks if not counts[task]]):
        return
    others = [task for task, count in counts.items() if count]
    advice = f"run again with --tasks {' '.join(others)}" if others else "name another source"
    drops = read_manifest(request.directory / "graph")["drops"]
    links = Counter({reason: n for reason, n in drops.items() if reason.startswith("link ")})
    dropped = ", ".join(f"{reason}: {count:,}" for reason, count in links.most_common(3))
    said = f"no link leads to another page ({dropped})" if links else "the corpus has no links"
    raise HarpError(f"{said}, so there is no example of {', '.join(without)}: {advice}")


def _example_counts(tables: Tables, tasks: Sequence[str]) -> ir.Table:
    import ibis

    examples = ((task, TASKS[task].examples(tables)) for task in tasks)
    rows = [
        table.aggregate(count=table.count()).select("count", name=ibis.literal(task))
        for task, table in examples
    ]
    return ibis.union(*rows)


def _tables(directory: Path) -> dict[str, Path]:
    corpus = {name: directory / "corpus" / name for name in CORPUS_TABLES}
    return corpus | {name: directory / "graph" / name for name in GRAPH_TABLES}


build_examples = BuildStage("examples", ("corpus", "graph"), _options, _list_examples)
