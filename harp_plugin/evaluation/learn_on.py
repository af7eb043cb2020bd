"""Datasets that fusions name as ``learn_on``: weights are learnt from their queries."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from pathlib import Path

from ..collections.dataset import JudgedDataset
from ..errors import HarpError
from .first_stage import FirstStage, first_stages
from .fused_runs import fusions_of
from .fusions import Judged
from .options import EvaluationOptions, file_stem
from .single_runs import single_runs

__all__ = ["judged_runs", "learning_datasets"]


def learning_datasets(
    options: EvaluationOptions, evaluated: JudgedDataset
) -> dict[str, JudgedDataset]:
    """Open the datasets from whose queries the weights of fusions are learnt, by name.

    Raises:
        HarpError: one of them shares a query with the dataset that is evaluated.
    """
    names = [fusion["learn_on"] for fusion in fusions_of(options).values()]
    named = dict.fromkeys(name for name in names if name is not None)
    return {name: _learning_dataset(options, name, evaluated) for name in named}


def judged_runs(
    options: EvaluationOptions,
    evaluated: JudgedDataset,
    collection: JudgedDataset,
    stages: Mapping[str, FirstStage],
    models: dict[str, str | list[str]],
) -> Judged:
    """Read or make the runs that are fused, for the queries of a dataset to learn from.

    Args:
        options: of the evaluation.
        evaluated: the dataset that is evaluated.
        collection: the dataset to learn from.
        stages: the first stages of the evaluated dataset, by row.
        models: fingerprints of the rerankers' models, by row.
    """
    fused = [fusion["of"] for fusion in fusions_of(options).values() if fusion["learn_on"]]
    needed = {row for rows in fused for row in rows}
    assert isinstance(options.rerankers, dict) and isinstance(options.first_stages, dict)
    own = copy(options)
    own.dataset, own.fusions = collection.name, {}
    own.rerankers = {row: value for row, value in options.rerankers.items() if row in needed}
    own.first_stages = {row: v for row, v in options.first_stages.items() if row in needed}
    own.index_dir = options.index_dir or str(Path(options.output_dir) / "index")
    own.output_dir = str(Path(options.output_dir) / "learn-on" / file_stem(collection.name))
    all_stages = _stages_on(options, stages, evaluated, collection)
    chosen = {row: stage for row, stage in all_stages.items() if row in own.rows}
    runs = single_runs(own, collection, chosen, models)
    return Judged(runs, collection.qrels)


def _stages_on(
    options: EvaluationOptions,
    stages: Mapping[str, FirstStage],
    evaluated: JudgedDataset,
    collection: JudgedDataset,
) -> dict[str, FirstStage]:
    """First stages for the queries of another dataset: the same ones on the same documents."""
    if evaluated.documents_identity == collection.documents_identity:
        return {row: stage.on(collection) for row, stage in stages.items()}
    return first_stages(options, collection)


def _learning_dataset(
    options: EvaluationOptions, name: str, evaluated: JudgedDataset
) -> JudgedDataset:
    collection = JudgedDataset(name, options.fields)
    shared = collection.topics.merge(evaluated.topics, on=["qid", "query"])
    if len(shared):
        raise HarpError(
            f"learn_on {name} has the query {shared['qid'][0]} of {options.dataset}, on which the "
            "weights are tested: name another dataset, or leave learn_on out to learn by folds"
        )
    return collection
