"""Rows of the table that fuse other rows, with weights that are learnt from other queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import HarpError
from ..ranking.fusion import fuse
from ..ranking.fusion_weights import learn_weights
from ..work.provenance import package_versions
from ..work.records import file_hash
from .folds import draw_parts
from .options import ExperimentOptions, Fusion
from .runs import ranked, stored_run

__all__ = ["Judged", "Learning", "by_folds", "fused_run", "notes"]

_FOLDS = 5


@dataclass(frozen=True)
class Judged:
    """Runs of the rows that are fused, and judgments of their queries.

    Attributes:
        runs: columns qid, docno and score, by row.
        qrels: columns qid, docno and label.
    """

    runs: Mapping[str, pd.DataFrame]
    qrels: pd.DataFrame

    def part(self, rows: Sequence[str], queries: Sequence[str]) -> Judged:
        """Take a part of the rows and of the queries."""
        runs = {row: self.runs[row] for row in rows}
        parts = {row: run[run["qid"].isin(queries)] for row, run in runs.items()}
        return Judged(parts, self.qrels[self.qrels["qid"].isin(queries)])


@dataclass(frozen=True)
class Learning:
    """Which queries are ranked with weights from which others.

    Attributes:
        train: ids of the queries that weights are learnt from.
        test: ids of the queries that are ranked with them.
        judged: the runs and judgments of the training queries; None for those of the ranked ones.
    """

    train: Sequence[str]
    test: Sequence[str]
    judged: Judged | None = None


def by_folds(queries: Sequence[str], seed: int) -> list[Learning]:
    """Deal queries to five folds, each of which is ranked with weights from the others.

    Raises:
        HarpError: there are fewer than two queries.
    """
    if len(queries) < 2:
        raise HarpError("weights cannot be learned from one query: name a train_dataset")
    parts = draw_parts(queries, min(_FOLDS, len(queries)), seed)
    return [Learning([query for query in queries if query not in part], part) for part in parts]


def fused_run(
    path: Path,
    fusion: Fusion,
    judged: Judged,
    learnings: Sequence[Learning],
    *,
    paths: Mapping[str, Path],
    options: ExperimentOptions,
    seed: int,
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read or make the run of a fusion.

    Args:
        path: of the run.
        fusion: what is fused, and how.
        judged: the rows' runs of the queries that are ranked.
        learnings: the queries to learn from, for each part of those that are ranked; none where
            the fusion names its weights.
        paths: of the runs that are fused, by row.
        options: of the experiment; by its first measure weights are learnt, unless the fusion names
            another.
        seed: draws the folds that learning holds out.

    Returns:
        The run, with columns qid, docno, score, rank; and what a record holds of its weights.
    """
    names = ("normalization", "candidates")
    arguments: dict[str, Any] = {name: getattr(fusion, name) for name in names}
    weights: list[tuple[Sequence[str], Mapping[str, float]]] = []
    if isinstance(fusion.weights, dict):
        queries = pd.concat([judged.runs[row]["qid"] for row in fusion.of]).unique()
        weights = [(queries.tolist(), fusion.weights)]
        record: dict[str, Any] = {**arguments, "weights": fusion.weights}
    else:
        measure = fusion.measure or options.measures[0]
        record = {**arguments, "measure": measure, "learnt": []}
        for learning in learnings:
            part = (learning.judged or judged).part(fusion.of, learning.train)
            learnt = learn_weights(part.runs, part.qrels, measure=measure, seed=seed, **arguments)
            weights.append((learning.test, learnt.weights))
            said = {k: value for k, value in learnt.record.items() if k not in record}
            record["learnt"].append(said)

    def fuse_parts() -> pd.DataFrame:
        parts = [
            fuse(judged.part(fusion.of, queries).runs, values, **arguments)
            for queries, values in weights
        ]
        fused = pd.concat(parts, ignore_index=True)
        return ranked(fused[fused["rank"] < options.depth])

    settings = {
        "fusion": asdict(fusion),
        "weights": record,
        "depth": options.depth,
        "runs": {row: file_hash(paths[row]) for row in fusion.of},
    }
    versions = package_versions("harp_plugin", "numpy", "pandas")
    run = stored_run(path, settings, fuse_parts, versions=versions, rules=options.rules)
    return run, record


def notes(records: Mapping[str, Any], options: ExperimentOptions) -> list[str]:
    """Say of each fusion with learnt weights how often its first row ranks alone.

    Args:
        records: of the fusions, by row.
        options: of the experiment.
    """
    lines = []
    for row, record in records.items():
        learnt = record.get("learnt", [])
        if alone := sum(part["first_alone"] for part in learnt):
            first = options.fused_rows[row].of[0]
            often = f" for {alone} of {len(learnt)} parts of the queries" if len(learnt) > 1 else ""
            lines.append(f"{row}: {first} ranks alone{often}, as no gain was sure")
    return lines
