"""The runs of fusions, whose weights are learnt on the training queries of folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ...collections.dataset import JudgedDataset
from ...collections.judged_queries import few_shot_order
from ..folds import Fold
from ..fused_runs import fusions_of, stored_fusion
from ..fusion_options import LEARN
from ..fusions import Fusion, Judged, Learning
from ..options import file_stem
from .conditions import Condition
from .options import CrossValidationOptions

__all__ = ["FusedRuns"]


class FusedRuns:
    """Makes the runs of fusions from those of the rows that they are made of.

    A fold's weights are learnt on as many of its training queries as the models learn from. The
    scores of these queries are those of their own folds' models, which have not seen them. Without
    a query to learn from, the first row ranks alone.

    Args:
        options: of the cross-validation.
        collection: what is ranked.
        folds: each is held out once.
        single_runs: of the first stages, by row.
        conditions: runs of the models' conditions, by their names.
    """

    def __init__(
        self,
        options: CrossValidationOptions,
        collection: JudgedDataset,
        folds: Sequence[Fold],
        single_runs: Mapping[str, pd.DataFrame],
        conditions: Mapping[str, pd.DataFrame],
    ) -> None:
        self._options = options
        self._collection = collection
        self._folds = folds
        self._single_runs = single_runs
        self._conditions = conditions

    def run(self, condition: Condition) -> tuple[pd.DataFrame, dict[str, Any]]:
        """Read or make the run of a fusion under a condition.

        Returns:
            The run, and what the record holds of its weights.
        """
        entry = self._entry(condition)
        options = self._options
        models = {row: self._same(condition, row) for row in options.model_rows}
        runs = {row: self._conditions[model.name] for row, model in models.items()}
        fusion = Fusion(
            entry,
            Judged({**self._single_runs, **runs}, self._collection.qrels),
            [Learning(self._train(condition, fold), fold.test) for fold in self._folds],
            measure=options.measures[0],
            seed=condition.seed,
            depth=options.depth,
        )
        folder = Path(options.output_dir) / "runs"
        paths = {row: folder / f"{file_stem(row)}.run" for row in self._single_runs}
        paths |= {row: folder / f"{model.name}.run" for row, model in models.items()}
        path = folder / f"{condition.name}.run"
        return stored_fusion(path, fusion, entry, paths, options), fusion.record

    def _entry(self, condition: Condition) -> dict[str, Any]:
        entry = fusions_of(self._options)[condition.system]
        if entry["weights"] != LEARN or condition.query_count != 0:
            return entry
        alone = {row: float(row == entry["of"][0]) for row in entry["of"]}
        return {**entry, "weights": alone}

    def _train(self, condition: Condition, fold: Fold) -> list[str]:
        """The ids of the queries that are learnt from, in the order in which models take them."""
        return few_shot_order(fold.train, condition.seed)[: condition.query_count]

    @staticmethod
    def _same(condition: Condition, row: str) -> Condition:
        return Condition(row, condition.query_count, condition.seed)
