"""Stage 4: the examples of every task, as tables of ids."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import HarpError
from ..work.manifest import read_content, read_manifest
from ..work.provenance import OverwriteRules
from ..work.sql.options import EngineOptions
from ..work.sql.steps import PACKAGES, Step, run_steps
from ..work.stage import Stage
from .registry import TASKS

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from ..work.sql.steps import Tables

__all__ = [
    "CORPUS_TABLES",
    "GRAPH_TABLES",
    "build_examples",
    "check_tasks_without_links",
    "examples_stage",
]

CORPUS_TABLES = ("pages", "sentences", "sections")
GRAPH_TABLES = (
    *("anchors", "sentence_anchors", "page_links", "documents"),
    *("anchor_texts", "ambiguous_texts", "see_also"),
)


def build_examples(
    directory: Path,
    tasks: Sequence[str],
    engine: EngineOptions | None = None,
    *,
    workers: int = 1,
    quiet: bool = True,
    rules: OverwriteRules | None = None,
) -> dict[str, Any]:
    """Write the examples of each task to ``directory/examples``.

    Returns:
        The stage's manifest.

    Raises:
        HarpError: a task is unknown, an earlier stage is unfinished or damaged, no task has an
            example, or the folder holds other work or other files.
    """
    steps = [Step(name, TASKS[name].examples) for name in tasks]
    read_content(directory, "corpus", "graph")
    stage = examples_stage(directory, tasks, rules)
    if stage.is_finished():
        return read_manifest(stage.folder)
    stage.start()
    run_steps(stage, _tables(directory), steps, engine, workers=workers, quiet=quiet)
    return stage.finish()


def check_tasks_without_links(
    directory: Path, tasks: Sequence[str], engine: EngineOptions | None = None, *, workers: int = 1
) -> None:
    """Check that a corpus without links has examples of tasks.

    Args:
        directory: the folder of the build, whose graph has no anchors.
        tasks: names of the tasks.
        engine: the engine and its memory.
        workers: the number of threads of the engine.

    Raises:
        HarpError: a task has none; the message names the tasks that have some.
    """
    stage = examples_stage(directory, tasks)
    stage.folder.mkdir(exist_ok=True)
    step = Step("counts", partial(_example_counts, tasks=tuple(TASKS)), "counts")
    counts = run_steps(stage, _tables(directory), [step], engine, workers=workers)
    if not (without := [task for task in tasks if not counts[task]]):
        return
    others = [task for task, count in counts.items() if count]
    advice = f"run again with --tasks {' '.join(others)}" if others else "name another source"
    raise HarpError(
        f"the corpus has no links, so there is no example of {', '.join(without)}: {advice}"
    )


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


def examples_stage(
    directory: Path, tasks: Sequence[str], rules: OverwriteRules | None = None
) -> Stage:
    """The stage of these tasks, not started. Its inputs are None while they are unfinished."""
    inputs = read_content(directory, "corpus", "graph", needed=False)
    folder = directory / "examples"
    return Stage(folder, {"tasks": list(tasks)}, inputs, PACKAGES, rules=rules)
