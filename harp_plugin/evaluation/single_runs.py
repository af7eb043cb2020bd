"""The runs of single rows, those of first stages and of rerankers, read or made."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pandas as pd
import pyterrier as pt

from ..collections.dataset import JudgedDataset
from ..work.output_paths import refuse_input
from ..work.versions import scoring_versions
from ..work.with_record import record_path
from .first_stage import FirstStage, dense_cosine
from .options import COSINE, EvaluationOptions, ExperimentOptions, file_stem, is_cosine
from .rerankers import make_reranker, rerank
from .runs import stored_run

__all__ = ["refuse_first_stage", "retrieve", "run_paths", "single_runs"]


def run_paths(options: ExperimentOptions) -> dict[str, Path]:
    """Name the file of each row's run."""
    folder = Path(options.output_dir) / "runs"
    return {row: folder / f"{file_stem(row)}.run" for row in options.rows}


def refuse_first_stage(stage: FirstStage, outputs: list[Path]) -> None:
    """Refuse to write over the first stage's run.

    Raises:
        HarpError: the run is an output, or the note of an output.
    """
    if stage.file is not None:
        for path in outputs:
            for file in (path, record_path(path)):
                refuse_input(file, {"the first stage": stage.file}, "--output-dir")


def retrieve(
    options: ExperimentOptions,
    collection: JudgedDataset,
    stages: Mapping[str, FirstStage],
    paths: Mapping[str, Path],
) -> dict[str, pd.DataFrame]:
    """Read or make the runs of first stages, by row."""
    settings = {**collection.identity, "depth": options.depth}
    return {
        row: stored_run(
            paths[row],
            {**settings, "first stage": stage.settings},
            stage.retrieve,
            versions=stage.versions,
            rules=options.rules,
        )
        for row, stage in stages.items()
    }


def single_runs(
    options: EvaluationOptions,
    collection: JudgedDataset,
    stages: Mapping[str, FirstStage],
    models: dict[str, str | list[str]],
) -> dict[str, pd.DataFrame]:
    """Read or make the runs of first stages and rerankers, by row."""
    paths = run_paths(options)
    for stage in stages.values():
        refuse_first_stage(stage, list(paths.values()))
    runs = retrieve(options, collection, stages, paths)
    stage, first = stages[options.rows[0]], runs[options.rows[0]]
    settings = {**collection.identity, "depth": options.depth, "first stage": stage.settings}
    for name, arguments in options.systems.items():
        runs[name] = stored_run(
            paths[name],
            {**settings, "reranker": arguments, "model": models[name]},
            partial(_reranked, first, collection, name, options),
            versions={**stage.versions, **scoring_versions()},
            rules=options.rules,
        )
    return runs


def _reranked(
    first: pd.DataFrame, collection: JudgedDataset, name: str, options: EvaluationOptions
) -> pd.DataFrame:
    """Rerank a run by the reranker of a row."""
    arguments = options.systems[name]
    if is_cosine(arguments["model"]):
        encoder = arguments["model"].removeprefix(COSINE)
        reranker: pt.Transformer = dense_cosine(encoder, options, collection)
    else:
        reranker = make_reranker(
            device=options.device, batch_tokens=options.batch_tokens, **arguments
        )
    return rerank(first, collection, reranker, name, options.quiet)
