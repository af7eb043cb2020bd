"""The rankings of a condition's folds, put together to one run over all queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from tqdm.auto import tqdm

from ...collections.dataset import JudgedDataset
from ..folds import Fold
from ..results import averages, measure_runs
from ..runs import ranked
from .conditions import Condition, FoldRun
from .fold_runs import FoldRuns

__all__ = ["PooledRun", "Pooling"]


@dataclass(frozen=True)
class PooledRun:
    """The run of a condition over all queries, each ranked by a model that has not seen it.

    Attributes:
        run: the results.
        hashes: of the folds' runs that it is made from.
        candidates: the place of the candidate that was taken for each fold.
    """

    run: pd.DataFrame
    hashes: list[str]
    candidates: list[int]


class Pooling:
    """Makes the runs of conditions.

    Args:
        fold_runs: makes the runs of folds.
        folds: each is held out once.
        candidates: how many candidates of the grid there are.
        collection: what is ranked.
        measure: the measure by which candidates are chosen on the queries for validation.
    """

    def __init__(
        self,
        fold_runs: FoldRuns,
        folds: Sequence[Fold],
        candidates: int,
        collection: JudgedDataset,
        measure: Any,
    ) -> None:
        self._fold_runs = fold_runs
        self._folds = folds
        self._candidates = candidates
        self._collection = collection
        self._measure = measure

    @property
    def steps(self) -> int:
        """How many runs of folds make up the run of a condition."""
        return len(self._folds) * self._candidates

    def pool(self, condition: Condition, bar: tqdm) -> PooledRun:
        """Put the rankings of a condition's folds together.

        Args:
            condition: the condition.
            bar: shows the progress; it is moved by `steps`.
        """
        parts, hashes, best = [], [], []
        for fold in self._folds:
            runs = []
            for candidate in range(self._candidates):
                fold_run = FoldRun(condition, fold, candidate)
                bar.set_postfix_str(str(fold_run))
                runs.append(self._fold_runs.fold_run(fold_run))
                hashes.append(self._fold_runs.hash_of(fold_run))
                bar.update()
            best.append(self._best(runs, fold))
            run = runs[best[-1]]
            parts.append(run[run["qid"].isin(fold.test)])
        pooled = pd.concat(parts, ignore_index=True)
        place = {qid: n for n, qid in enumerate(self._collection.topics["qid"])}
        pooled = pooled.sort_values("qid", key=lambda qid: qid.map(place), kind="stable")
        return PooledRun(ranked(pooled), hashes, best)

    def _best(self, runs: list[pd.DataFrame], fold: Fold) -> int:
        values = [self._validate(run, fold) for run in runs] if fold.validation else [0.0]
        return values.index(max(values))

    def _validate(self, run: pd.DataFrame, fold: Fold) -> float:
        """Measure a run on the queries for validation."""
        if run.empty:
            return 0.0
        topics, qrels = self._collection.topics, self._collection.qrels
        per_query = measure_runs(
            {"run": run},
            topics[topics["qid"].isin(fold.validation)],
            qrels[qrels["qid"].isin(fold.validation)],
            [self._measure],
        )
        return averages(per_query)["run"][str(self._measure)]
