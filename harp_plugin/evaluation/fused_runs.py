"""The runs of fusions, read or made from those of the rows that they fuse."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ..collections.dataset import JudgedDataset
from ..work.hashes import file_hash
from ..work.versions import package_versions
from .fusion_options import LEARN
from .fusions import Fusion, Judged, Learning, by_folds
from .options import EvaluationOptions, ExperimentOptions
from .runs import stored_run
from .single_runs import run_paths

__all__ = ["add_fusions", "fusions_of", "stored_fusion"]


def fusions_of(options: ExperimentOptions) -> dict[str, Any]:
    """The fusions, as `check_fusions` gives them, by row."""
    assert isinstance(options.fusions, dict)
    return options.fusions


def add_fusions(
    options: EvaluationOptions,
    collection: JudgedDataset,
    runs: dict[str, pd.DataFrame],
    learnt_from: Mapping[str, Judged],
) -> dict[str, Any]:
    """Add the runs of fusions to the others.

    Returns:
        What the record holds of each fusion's weights, by row.
    """
    paths, records = run_paths(options), {}
    queries = collection.topics["qid"].tolist()
    judged = Judged(dict(runs), collection.qrels)
    for row, entry in fusions_of(options).items():
        learnings = []
        if entry["weights"] == LEARN and entry["learn_on"] is None:
            learnings = by_folds(queries, options.seed)
        elif entry["weights"] == LEARN:
            other = learnt_from[entry["learn_on"]]
            learnings = [Learning(other.qrels["qid"].unique().tolist(), queries, other)]
        fusion = Fusion(
            entry,
            judged,
            learnings,
            measure=options.measures[0],
            seed=options.seed,
            depth=options.depth,
        )
        records[row] = fusion.record
        runs[row] = stored_fusion(paths[row], fusion, entry, paths, options)
    return records


def stored_fusion(
    path: Path,
    fusion: Fusion,
    entry: Mapping[str, Any],
    paths: Mapping[str, Path],
    options: ExperimentOptions,
) -> pd.DataFrame:
    """Read or make the run of a fusion.

    Args:
        path: of the run.
        fusion: makes it.
        entry: the fusion's entry among the options.
        paths: of the runs that are fused, by row.
        options: of the experiment.
    """
    settings = {
        "fusion": entry,
        "weights": fusion.record,
        "depth": options.depth,
        "runs": {row: file_hash(paths[row]) for row in entry["of"]},
    }
    packages = package_versions("harp_plugin", "numpy", "pandas")
    return stored_run(path, settings, fusion.run, versions=packages, rules=options.rules)
