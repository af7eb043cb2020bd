"""Rows of the table that fuse other rows, with weights that are learnt from other queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ..errors import HarpError
from ..ranking.fusion import fuse
from ..ranking.fusion_weights import LearntWeights, learn_weights
from .folds import draw_parts
from .fusion_options import LEARN
from .runs import ranked

__all__ = ["Fusion", "Judged", "Learning", "by_folds", "notes"]

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

    def of(self, rows: Sequence[str], queries: Sequence[str]) -> Judged:
        """Take some rows and some queries."""
        runs = {row: self.runs[row] for row in rows}
        parts = {row: run[run["qid"].isin(queries)] for row, run in runs.items()}
        return Judged(parts, self.qrels[self.qrels["qid"].isin(queries)])


@dataclass(frozen=True)
class Learning:
    """Which queries are ranked with weights from which others.

    Attributes:
        train: ids of the queries that weights are learnt from.
        test: ids of the queries that are ranked with them.
        judged: where the training queries stand; None for where the ranked ones do.
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
        raise HarpError("weights cannot be learnt from other queries than the one: name learn_on")
    parts = draw_parts(queries, min(_FOLDS, len(queries)), seed)
    return [Learning([query for query in queries if query not in part], part) for part in parts]


class Fusion:
    """Makes the run of one fusion.

    Args:
        fusion: as `check_fusions` gives it.
        judged: the rows' runs of the queries that are ranked.
        learnings: the queries to learn from, for each part of those that are ranked.
        measure: what learnt weights are good at, unless the fusion names a measure.
        seed: draws the folds that learning holds out.
        depth: how many results of a query are kept.

    Attributes:
        record: the weights, for the record of results; JSON types.
    """

    def __init__(
        self,
        fusion: Mapping[str, Any],
        judged: Judged,
        learnings: Sequence[Learning],
        *,
        measure: str,
        seed: int,
        depth: int,
    ) -> None:
        self._fusion = fusion
        self._judged = judged
        self._depth = depth
        self._of: list[str] = fusion["of"]
        self._options = {name: fusion[name] for name in ("normalization", "candidates")}
        self._weights: list[tuple[Sequence[str], Mapping[str, float]]]
        if fusion["weights"] != LEARN:
            queries = judged.runs[self._of[0]]["qid"].unique().tolist()
            self._weights = [(queries, fusion["weights"])]
            self.record: dict[str, Any] = {**self._options, "weights": fusion["weights"]}
            return
        learn = self._learner(fusion["measure"] or measure, seed)
        parts = [(learning, learn(learning)) for learning in learnings]
        self._weights = [(learning.test, learnt.weights) for learning, learnt in parts]
        self.record = {
            **self._options,
            "measure": fusion["measure"] or measure,
            "learnt": [_without(learnt.record, (*self._options, "measure")) for _, learnt in parts],
        }

    def run(self) -> pd.DataFrame:
        """Rank the queries: columns qid, docno, score, rank."""
        parts = []
        for queries, weights in self._weights:
            runs = self._judged.of(self._of, queries).runs
            fused = fuse(runs, weights, **self._options)
            parts.append(fused[fused["rank"] < self._depth])
        return ranked(pd.concat(parts, ignore_index=True))

    def _learner(self, measure: str, seed: int) -> Callable[[Learning], LearntWeights]:
        def learn(learning: Learning) -> LearntWeights:
            judged = (learning.judged or self._judged).of(self._of, learning.train)
            return learn_weights(
                judged.runs, judged.qrels, measure=measure, seed=seed, **self._options
            )

        return learn


def notes(records: Mapping[str, Any], fusions: Mapping[str, Any]) -> list[str]:
    """Say of each fusion with learnt weights how often its first row ranks alone.

    Args:
        records: of the fusions, by row.
        fusions: as `check_fusions` gives them, by row.
    """
    lines = []
    for row, record in records.items():
        learnt = record.get("learnt", [])
        alone = Counter(part["first_alone"] for part in learnt)[True]
        if alone:
            first = fusions[row]["of"][0]
            often = f" for {alone} of {len(learnt)} parts of the queries" if len(learnt) > 1 else ""
            lines.append(f"{row}: {first} ranks alone{often}, as no gain was sure")
    return lines


def _without(values: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}
