"""Stage 4: the examples of every task, as tables of ids."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..engine import PACKAGES, EngineOptions, Step, run_steps
from ..files.made_from import OverwriteRules
from ..storage import Stage, read_content, read_manifest
from .registry import TASKS

__all__ = ["CORPUS_TABLES", "GRAPH_TABLES", "build_examples", "examples_stage"]

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
    corpus, graph = directory / "corpus", directory / "graph"
    read_content(directory, "corpus", "graph")
    stage = examples_stage(directory, tasks, rules)
    if stage.is_finished():
        return read_manifest(stage.folder)
    stage.start()
    sources = {name: corpus / name for name in CORPUS_TABLES}
    sources |= {name: graph / name for name in GRAPH_TABLES}
    run_steps(stage, sources, steps, engine, workers=workers, quiet=quiet)
    return stage.finish()


def examples_stage(
    directory: Path, tasks: Sequence[str], rules: OverwriteRules | None = None
) -> Stage:
    """The stage of these tasks, not started. Its inputs are None while they are unfinished."""
    inputs = read_content(directory, "corpus", "graph", needed=False)
    folder = directory / "examples"
    return Stage(folder, {"tasks": list(tasks)}, inputs, PACKAGES, rules=rules)
