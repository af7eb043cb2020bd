"""Learning to rank: a linear ranker and LambdaRank from the features of judged results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt

from ..errors import HarpError
from .base import LazyTransformer
from .candidates import SCALES
from .frames import check_frame, rerank_frame

__all__ = ["LearnedRanker"]

_SEEDS = 3
"""Runs of LambdaRank whose scores are added, which vary with the seed."""
_FEWEST_QUERIES_FOR_TREES = 100
_MANY_QUERIES = 1000
"""From so many queries on, trees are larger, read coarser features and learn in larger steps."""
_ROUNDS = 150
_L2 = 0.01
_standardize = SCALES["zscore"]


@dataclass(eq=False, repr=False)
class LearnedRanker(LazyTransformer, pt.Estimator):
    """Rank results by their features: ``first_stage >> features >> LearnedRanker()``.

    ``pipeline.fit(topics, qrels)`` teaches it. Two rankers learn from the queries that have a
    relevant result: a linear one, by the softmax over the results of a query (the top-one loss of
    ListNet, Cao et al., ICML 2007), from features standardized within each query; and LightGBM's
    LambdaRank (Burges, 2010), from the features as they are, standardized, and less the best of the
    query. The standardized scores of both are added. With fewer than 100 queries, the linear ranker
    learns alone.

    Args:
        learned: what a ranker has learned, as ``ranker.learned`` gives it after `fit`; None for one
            that is still to learn. It is of JSON's types; `HarpPipeline.save` writes it.
        seed: of the trees.
        feature_names: names of the features, in their order; none where nobody reads them.
    """

    learned: Mapping[str, Any] | None = None
    _: KW_ONLY
    seed: int = 42
    feature_names: Sequence[str] = ()

    def fit(
        self,
        topics_or_res_tr: pd.DataFrame,
        qrels_tr: pd.DataFrame,
        topics_or_res_va: pd.DataFrame | None = None,
        qrels_va: pd.DataFrame | None = None,
    ) -> LearnedRanker:
        """Learn from judged results; what was learned before is forgotten.

        Args:
            topics_or_res_tr: results with ``qid``, ``docno`` and ``features``.
            qrels_tr: judgments of their queries, with ``qid``, ``docno`` and ``label``.
            topics_or_res_va: results of other queries, which PyTerrier's pipelines give; nothing
                is chosen by them.
            qrels_va: their judgments.

        Raises:
            HarpError: no query has a relevant result, the judgments lack a column, LightGBM is not
                installed or cannot learn from so many results, or there are not as many features as
                names or as other results have.
        """
        pt.validate.result_frame(topics_or_res_tr, extra_columns=["features"], context=self)
        labels = _labels(topics_or_res_tr, qrels_tr)
        judged = topics_or_res_tr["qid"].isin(topics_or_res_tr["qid"][labels > 0]).to_numpy()
        if not judged.any():
            raise HarpError("no query has a relevant result to learn from: give other judgments")
        train = _Results.from_frame(topics_or_res_tr[judged])
        count = train.features.shape[1]
        if (names := len(self.feature_names)) not in (0, count):
            raise HarpError(f"{count} features have {names} feature_names: give each one")
        labels = labels[judged][train.order]
        has_trees = len(train.starts) >= _FEWEST_QUERIES_FOR_TREES
        trees = _trees(train, labels, self.seed) if has_trees else []
        weights = _linear_weights(train, labels)
        self.learned = asdict(_Model(trees, weights, [1.0, float(has_trees)]))
        return self

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Rank results by their features.

        Args:
            inp: results with ``qid``, ``docno`` and ``features``.

        Returns:
            The rows with new ``score`` (float64) and ``rank`` (from 0).

        Raises:
            HarpError: the ranker has not learned yet, or from another number of features.
        """
        pt.validate.result_frame(inp, extra_columns=["features"], context=self)
        check_frame(inp)
        if inp.empty:
            return rerank_frame(inp, np.zeros(0))
        results = _Results.from_frame(inp)
        scores = np.empty(len(inp))
        scores[results.order] = self._model.scores(results)
        return rerank_frame(inp, scores)

    @property
    def importances(self) -> pd.Series:
        """(features,) the share of each feature in what the trees gain, or in the linear weights.

        The index has the names of the features, or their numbers. Linear weights count, by their
        absolute values, where there are no trees.

        Raises:
            HarpError: the ranker has not learned yet.
        """
        return pd.Series(self._model.importances(), index=list(self.feature_names) or None)

    @property
    def _model(self) -> _Model:
        """What was learned, with LightGBM's models read once.

        Raises:
            HarpError: nothing was.
        """
        learned = self.learned
        if learned is None:
            raise HarpError("this ranker has not learned yet: call fit of its pipeline first")
        return self._make_once("model", learned, lambda: _Model(**learned))

    def __repr__(self) -> str:
        has_learned = "untrained" if self.learned is None else "trained"
        return f"LearnedRanker({has_learned}, seed={self.seed})"

    def _comparison_key(self) -> Any:
        return id(self) if self.learned is None else json.dumps(self.learned)


@dataclass(frozen=True)
class _Results:
    """The features of results, those of a query one after another.

    Attributes:
        order: (results,) the row of each result in its frame.
        starts: (queries,) the index of each query's first result.
        features: (results, features) float64.
    """

    order: np.ndarray
    starts: np.ndarray
    features: np.ndarray

    @classmethod
    def from_frame(cls, frame: pd.DataFrame) -> _Results:
        query_of = pd.factorize(frame["qid"])[0]
        order = np.argsort(query_of, kind="stable")
        starts = np.flatnonzero(np.diff(query_of[order], prepend=-1))
        values = frame["features"].map(np.atleast_1d)
        if (lengths := values.map(len)).nunique() > 1:
            numbers = " and ".join(map(str, lengths.unique()[:2]))
            raise HarpError(f"results have {numbers} features: give each as many")
        features = np.stack(values.to_list())[order].astype(np.float64)
        if not np.isfinite(features).all():
            row, feature = np.argwhere(~np.isfinite(features))[0]
            qid, docno = frame.iloc[order[row]][["qid", "docno"]]
            raise HarpError(
                f"feature {feature} of query {qid!r} and document {docno!r} is "
                f"{features[row, feature]}: give finite features"
            )
        return cls(order, starts, features)

    @cached_property
    def sizes(self) -> np.ndarray:
        """(queries,) how many results each query has."""
        return np.diff(self.starts, append=len(self.order))

    @cached_property
    def standardized(self) -> np.ndarray:
        """(results, features) with mean 0 and deviation 1 within each query."""
        return _standardize(self.features.T, self.starts).T

    @cached_property
    def all(self) -> np.ndarray:
        """(results, 3 * features) what trees read."""
        best = np.maximum.reduceat(self.features, self.starts)
        below = self.features - np.repeat(best, self.sizes, axis=0)
        return np.hstack([self.features, self.standardized, below])


@dataclass(frozen=True)
class _Model:
    """What was learned.

    Attributes:
        trees: LightGBM's models as text, whose scores are added.
        linear: (features,) weights of standardized features.
        parts: weights of the linear ranker's and of the trees' standardized scores.
    """

    trees: Sequence[str]
    linear: Sequence[float]
    parts: Sequence[float]

    @cached_property
    def _boosters(self) -> list[Any]:
        from lightgbm import Booster

        return [Booster(model_str=text) for text in self.trees]

    def scores(self, results: _Results) -> np.ndarray:
        """(results,) the sum of the standardized scores of the linear ranker and of the trees."""
        if results.features.shape[1] != len(self.linear):
            raise HarpError(
                f"this ranker learned from {len(self.linear)} features, and results have "
                f"{results.features.shape[1]}: rank with the pipeline that it learned in"
            )
        trees = np.zeros(len(results.order))
        for booster in self._boosters:
            trees += booster.predict(results.all, num_threads=1)  # a forked process has no others
        scores = np.stack([results.standardized @ self.linear, trees])
        return np.array(self.parts) @ _standardize(scores, results.starts)

    def importances(self) -> np.ndarray:
        """(features,) shares, which add to 1."""
        shares = np.abs(self.linear)
        if self._boosters:
            gains = sum(booster.feature_importance("gain") for booster in self._boosters)
            shares = np.reshape(gains, (-1, len(self.linear))).sum(axis=0)
        return shares / (shares.sum() or 1)


def _labels(frame: pd.DataFrame, qrels: pd.DataFrame) -> np.ndarray:
    """(rows,) the judgment of each result, 0 for none."""
    keys = ["qid", "docno"]
    if missing := [name for name in (*keys, "label") if name not in qrels]:
        raise HarpError(f"the judgments have no column {missing[0]}: give qid, docno and label")
    types = {**dict.fromkeys(keys, str), "label": np.int64}
    best = qrels.astype(types).groupby(keys, as_index=False)["label"].max()
    found = frame[keys].astype(str).merge(best, on=keys, how="left")["label"]
    return found.fillna(0).clip(lower=0).to_numpy(dtype=np.int64)


def _linear_weights(train: _Results, labels: np.ndarray) -> list[float]:
    """Minimize the cross-entropy between relevance and the softmax over each query's results."""
    from scipy.optimize import minimize

    features, count = train.standardized, len(train.starts)
    relevant = (labels > 0).astype(np.float64)
    relevant /= np.repeat(np.add.reduceat(relevant, train.starts), train.sizes)

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        scores = features @ weights
        scores -= np.repeat(np.maximum.reduceat(scores, train.starts), train.sizes)
        sums = np.repeat(np.add.reduceat(np.exp(scores), train.starts), train.sizes)
        value = -(relevant * (scores - np.log(sums))).sum() / count
        gradient = features.T @ (np.exp(scores) / sums - relevant) / count
        return value + _L2 * (weights @ weights) / 2, gradient + _L2 * weights

    found = minimize(loss, np.zeros(features.shape[1]), jac=True, method="L-BFGS-B")
    return [float(weight) for weight in found.x]


def _trees(train: _Results, labels: np.ndarray, seed: int) -> list[str]:
    """Learn LambdaRank's models; they are the same for any number of threads."""
    import lightgbm

    many = len(train.starts) >= _MANY_QUERIES
    settings: dict[str, Any] = {
        "objective": "lambdarank",
        "num_leaves": 31 if many else 15,
        "min_data_in_leaf": 50,
        "max_bin": 63 if many else 255,
        "learning_rate": 0.1 if many else 0.05,
        "bagging_fraction": 0.8,
        "bagging_freq": 1,
        "feature_fraction": 0.7,
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
    }
    data = lightgbm.Dataset(train.all, labels, group=train.sizes, free_raw_data=False)
    seeds = range(seed, seed + _SEEDS)
    try:
        models = [lightgbm.train({**settings, "seed": each}, data, _ROUNDS) for each in seeds]
    except lightgbm.basic.LightGBMError as error:  # of more than 10,000 results, or grades above 30
        raise HarpError(f"LightGBM cannot learn from these results: {error}") from error
    return [model.model_to_string() for model in models]
