"""The weights of a fusion, learnt so that it is not significantly worse than its first system."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

from ..errors import HarpError
from ..sampling import generator
from .candidates import check_fusion, read_candidates
from .ranking_measures import MeasuredRankings, parse_measure

__all__ = ["FEWEST_QUERIES", "GRID", "LEVEL", "Gain", "LearntWeights", "learn_weights"]

GRID = (0.0, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
"""The weights of a system that are tried, next to the weight 1 of the first system."""
LEVEL = 0.05
"""How often at most a fusion that gains nothing is taken for one that does."""
FEWEST_QUERIES = 5
"""With fewer judged queries, the first system ranks alone."""
_FOLDS = 10
_RESAMPLES = 30
_MOST_ROUNDS = 20
_DIGITS = 12
_WEIGHT_DIGITS = 4

_Weights = tuple[float, ...]


@dataclass(frozen=True)
class Gain:
    """What one system gains over another on the same queries.

    Attributes:
        mean: of the gains of the queries.
        standard_error: of that mean.
        is_sure: whether a one-sided paired t-test of five queries or more finds a gain.
    """

    mean: float
    standard_error: float
    is_sure: bool

    @classmethod
    def from_queries(cls, gains: np.ndarray, level: float = LEVEL) -> Gain:
        """Test the gains of queries, (queries,), at a level."""
        count, mean = len(gains), float(gains.mean())
        error = float(gains.std(ddof=1) / math.sqrt(count)) if count > 1 else 0.0
        if count < FEWEST_QUERIES:
            return cls(mean, error, is_sure=False)
        least = error * float(student.ppf(1 - level, count - 1))
        return cls(mean, error, is_sure=mean > max(least, 0.0))


@dataclass(frozen=True)
class LearntWeights:
    """The weights of a fusion, and what they were learnt from.

    Attributes:
        weights: by the names of the systems; that of the first is 1.
        normalization: how scores are brought to one scale.
        candidates: which documents are ranked.
        measure: what was measured.
        queries: how many judged queries the weights were learnt from.
        gain: the mean gain of learnt weights over the first system alone, on queries that they
            were not learnt from.
        standard_error: of that mean.
        level: of the test of a gain.
    """

    weights: dict[str, float]
    normalization: str
    candidates: str
    measure: str
    queries: int
    gain: float
    standard_error: float
    level: float

    @property
    def first_alone(self) -> bool:
        """Return whether the first system ranks alone."""
        return not any(list(self.weights.values())[1:])

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `HarpFusion` but for its systems."""
        every = asdict(self)
        return {name: every[name] for name in ("weights", "normalization", "candidates")}

    @property
    def record(self) -> dict[str, Any]:
        """What a record holds of these weights; JSON types."""
        return {**asdict(self), "first_alone": self.first_alone}

    def __str__(self) -> str:
        first = next(iter(self.weights))
        if self.queries < FEWEST_QUERIES:
            return (
                f"{first} ranks alone: {self.queries} judged queries are too few to learn weights "
                f"from, {FEWEST_QUERIES} are needed"
            )
        measured = (
            f"on held-out parts of {self.queries} judged queries, learnt weights change "
            f"{self.measure} by {self.gain:+.4f} (standard error {self.standard_error:.4f})"
        )
        if self.first_alone:
            return f"{first} ranks alone: {measured}, which is not enough to be sure of a gain"
        weights = ", ".join(f"{name} {weight:g}" for name, weight in self.weights.items())
        return f"weights are {weights}: {measured}"


def learn_weights(
    runs: Mapping[str, pd.DataFrame],
    qrels: pd.DataFrame,
    measure: Any = "RR@10",
    normalization: str = "zscore",
    candidates: str = "first",
    seed: int = 42,
    level: float = LEVEL,
) -> LearntWeights:
    """Choose weights by which a fusion is not significantly worse than its first system.

    The queries are resampled 30 times with replacement, the weights of the best mean on a small
    grid are found for each resample, and the mean of these weights is taken (bagging; Breiman,
    "Bagging Predictors", 1996): one best point of the grid hangs on few queries. Where means are
    equal, the smallest weights are the best.

    The learnt weights are taken only if learning pays: the queries are dealt to 10 folds (each
    query is one where there are fewer than 10), the weights that are learnt from the other folds
    rank each fold, and a one-sided paired t-test at ``level`` must find that these rankings are
    better than those of the first system. If it does not, the first system ranks alone: it has
    weight 1 and all others 0. A fusion that gains nothing is so taken in about one of twenty cases,
    however few the queries are. The price is that a real gain needs queries enough to be seen.

    Args:
        runs: what the systems return for the judged queries, as frames of ``qid``, ``docno`` and
            ``score``, by the names of the systems. The first is the one to fall back to.
        qrels: frame of ``qid``, ``docno`` and ``label``; its queries are learnt from, and one for
            which the runs have nothing counts 0.
        measure: of ir_measures, or its name.
        normalization: see `HarpFusion`.
        candidates: see `HarpFusion`.
        seed: draws the folds and the resamples.
        level: of the test, which is how often a fusion that gains nothing may be taken; 0.16 is
            about the rule of one standard error, 1 takes the learnt weights without a test.

    Returns:
        The weights, for ``HarpFusion(systems, **learnt.arguments)``; ``first_alone`` and the text
        of it tell whether the first system ranks alone.

    Raises:
        HarpError: a run, the judgments, the measure or an option is at fault.
    """
    check_fusion(runs, normalization, candidates)
    if not 0 < level <= 1:
        raise HarpError(f"level is {level}: it must be above 0 and at most 1")
    measure = parse_measure(measure)

    @cache
    def measured(*names: str) -> tuple[np.ndarray, MeasuredRankings]:
        used = {name: runs[name] for name in names}
        documents = read_candidates(used, normalization=normalization, candidates=candidates)
        return documents.scores, MeasuredRankings(documents, qrels, measure)

    search = _Search(list(runs), measured, seed)
    count = len(measured(*search.names)[1].qids)
    alone = (1.0, *(0.0 for _ in search.names[1:]))
    gain = Gain.from_queries(np.zeros(1))
    best = alone
    if count >= FEWEST_QUERIES:
        gains = _held_out_gains(search, alone, generator(seed, "fusion").permutation(count))
        gain = Gain.from_queries(gains, level)
        if level == 1 or gain.is_sure:
            best = search.learn(np.arange(count))
    return LearntWeights(
        dict(zip(search.names, best, strict=True)),
        normalization,
        candidates,
        str(measure),
        count,
        gain.mean,
        gain.standard_error,
        level,
    )


def _held_out_gains(search: _Search, alone: _Weights, order: np.ndarray) -> np.ndarray:
    """(queries,) gains over the first system by weights that were learnt from other folds."""
    folds = min(_FOLDS, len(order))
    gains = np.empty(len(order))
    for fold in range(folds):
        held_out = order[fold::folds]
        weights = search.learn(np.setdiff1d(order, held_out))
        gains[held_out] = (search.values(weights) - search.values(alone))[held_out]
    return gains


@dataclass
class _Search:
    """Finds weights: the mean of those that are best for resamples of the queries.

    Args:
        names: of the systems.
        measured: gives, for names of systems, (systems, documents) scores of what these systems
            rank, and what measures rankings of it. A system without a weight adds no documents.
        seed: draws the resamples.
    """

    names: Sequence[str]
    measured: Callable[..., tuple[np.ndarray, MeasuredRankings]]
    seed: int
    _values: dict[_Weights, np.ndarray] = field(default_factory=dict)

    def values(self, weights: _Weights) -> np.ndarray:
        """(queries,) the measure of each query; weights are measured once."""
        if weights not in self._values:
            used = {name: w for name, w in zip(self.names, weights, strict=True) if w}
            scores, measured = self.measured(*used)
            self._values[weights] = measured.values(np.array([*used.values()]) @ scores)
        return self._values[weights]

    def learn(self, queries: np.ndarray) -> _Weights:
        """Return the mean of the weights that are best for resamples of some queries.

        Args:
            queries: (n,) indices of queries.
        """
        draws = generator(self.seed, "resamples").choice(queries, (_RESAMPLES, len(queries)))
        mean = np.mean([self.best(resample) for resample in draws], axis=0)
        return tuple(map(float, mean.round(_WEIGHT_DIGITS)))

    def best(self, queries: np.ndarray) -> _Weights:
        """Find the weights of the best mean over some queries; of equal means the smallest.

        One weight after another is changed.

        Args:
            queries: (n,) indices of queries; which may repeat.
        """

        @cache
        def worth(weights: _Weights) -> tuple[float, float]:
            mean = float(self.values(weights)[queries].mean())
            return round(mean, _DIGITS), -sum(weights)

        return max((self._climb(start, worth) for start in self._starts()), key=worth)

    def _starts(self) -> Sequence[_Weights]:
        """The first system with each other one, and with all others by each weight of the grid."""
        others = len(self.names) - 1
        starts = [*np.eye(others), *(np.full(others, weight) for weight in GRID)]
        return list(dict.fromkeys((1.0, *map(float, start)) for start in starts))

    @staticmethod
    def _climb(weights: _Weights, worth: Any) -> _Weights:
        """Set each weight in turn to its best value, until none changes."""
        for _ in range(_MOST_ROUNDS):
            before = weights
            for index in range(1, len(weights)):
                choices = [(*weights[:index], value, *weights[index + 1 :]) for value in GRID]
                weights = max(choices, key=worth)
            if weights == before:
                break
        return weights
