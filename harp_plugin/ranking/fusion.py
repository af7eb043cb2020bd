"""Fusion of first stages and rerankers: the weighted sum of their normalized scores."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt

from ..errors import HarpError
from .base import ComparedTransformer
from .candidates import check_fusion, check_weights, read_candidates
from .fusion_weights import LearntWeights, learn_weights

__all__ = ["FIRST", "HarpFusion", "StageBefore", "fuse", "observed_systems"]

logger = logging.getLogger(__name__)

FIRST = "first stage"
"""Name of the scores that a fusion in a pipeline takes from the stage before it."""
_observed: ContextVar[dict[str, pd.DataFrame] | None] = ContextVar("observed", default=None)


@contextmanager
def observed_systems() -> Iterator[dict[str, pd.DataFrame]]:
    """Collect what the systems of all fusions return in this block.

    Yields:
        The results by the names of the systems; it is filled when a fusion runs in this thread.
    """
    systems: dict[str, pd.DataFrame] = {}
    token = _observed.set(systems)
    try:
        yield systems
    finally:
        _observed.reset(token)


class StageBefore(ComparedTransformer):
    """The results of the stage before a fusion in a pipeline, as they are.

    Unlike PyTerrier's identity, two of them are equal, and a diagram asks no network.
    """

    schematic = {"label": "stage before", "help_url": None}  # noqa: RUF012

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Return results that have scores, as they are."""
        pt.validate.result_frame(inp, extra_columns=["score"], context=self)
        return inp

    def _comparison_key(self) -> tuple[()]:
        return ()


class HarpFusion(ComparedTransformer):
    """Rank by the weighted sum of several systems' scores, which are normalized for each query.

    A fusion of first stages and pipelines, ``HarpFusion({"bm25": bm25, "cosine": cosine})``,
    retrieves. One whose systems rerank takes the results of a first stage:
    ``bm25 >> HarpFusion.of_scores({"cross-encoder": harp, "cosine": cosine})``.

    A candidate that a system does not return gets the least score that this system gives to any
    document of the query. Equal sums keep the order of the first system. A system of weight 0 is
    not run, unless it is the first and its documents are the candidates. Pipelines that begin with
    the first system take its results, so that it runs once.

    Args:
        systems: transformers by name. The first is the one to fall back to.
        weights: by the names of all systems, none negative; 1 for each by default.
        normalization: ``zscore`` (mean 0 and standard deviation 1 over the candidates of a query),
            ``minmax`` (0 to 1), or ``rrf`` for reciprocal rank fusion, 1 / (60 + rank), by which a
            document that a system does not return gets 0. Scores that are all equal become 0.
        candidates: which documents are ranked: ``first`` for those of the first system, ``union``
            for those of any system whose weight is not 0.

    Raises:
        HarpError: an argument makes no sense.
    """

    schematic = {"label": "HarpFusion", "help_url": None, "inner_pipelines_mode": "combine"}  # noqa: RUF012

    def __init__(
        self,
        systems: Mapping[str, pt.Transformer],
        *,
        weights: Mapping[str, float] | None = None,
        normalization: str = "zscore",
        candidates: str = "first",
    ) -> None:
        self.systems = dict(systems)
        check_fusion(self.systems, normalization, candidates)
        for name, system in self.systems.items():
            if not isinstance(system, pt.Transformer):
                raise HarpError(f"system {name!r} is {system!r:.60}: name a transformer")
        self.weights = check_weights(list(self.systems), weights)
        self.normalization = normalization
        self.candidates = candidates

    @classmethod
    def of_scores(
        cls,
        rerankers: Mapping[str, pt.Transformer],
        *,
        weights: Mapping[str, float] | None = None,
        normalization: str = "zscore",
        first: str = FIRST,
    ) -> HarpFusion:
        """Fuse the scores of the stage before with those that rerankers give to its results.

        Args:
            rerankers: by name.
            weights: as those of `HarpFusion`, that of the stage before by the name ``first``.
            normalization: see `HarpFusion`.
            first: name of the stage before.

        Raises:
            HarpError: an argument makes no sense.
        """
        if first in rerankers:
            raise HarpError(f"{first!r} is the name of a reranker: give the stage before another")
        systems = {first: StageBefore(), **rerankers}
        return cls(systems, weights=weights, normalization=normalization)

    @staticmethod
    @wraps(learn_weights)
    def learn(*args: Any, **options: Any) -> LearntWeights:
        learnt = learn_weights(*args, **options)
        logger.info("%s", learnt)
        return learnt

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Run the systems and rank the candidates of each query, best first.

        Args:
            inp: queries, or results where the systems rerank.

        Returns:
            The columns that all systems return, with new ``score`` (float64) and ``rank`` (from 0).

        Raises:
            HarpError: an attribute that was set later makes no sense, a score is not a finite
                number, or a system returns a document twice; the message names the system, the qid
                and the docno.
        """
        check_fusion(self.systems, self.normalization, self.candidates)
        self.weights = check_weights(list(self.systems), self.weights)
        return _fused(self._run(inp), self.weights, self.normalization, self.candidates)

    def transform_inputs(self) -> list[list[str]]:
        """The columns that the systems need, as PyTerrier's inspection takes them."""
        inputs = [pt.inspect.transformer_inputs(s, strict=False) for s in self.systems.values()]
        return [list(dict.fromkeys(name for of in inputs if of for name in min(of, key=len)))]

    def subtransformers(self) -> dict[str, list[pt.Transformer]]:
        """The systems, as PyTerrier's inspection and diagrams take them."""
        return {"systems": list(self.systems.values())}

    def _run(self, inp: pd.DataFrame) -> dict[str, pd.DataFrame]:
        """Run the first system, and each other one that has a weight."""
        (first, first_system), *others = self.systems.items()
        results = first_system.transform(inp)
        frames = {first: results}
        for name, system in others:
            if self.weights[name] > 0:
                rest = _rest_of(system, first_system)
                frames[name] = system.transform(inp) if rest is None else rest.transform(results)
        if (observed := _observed.get()) is not None:
            observed.update(frames)
        return frames

    def _comparison_key(self) -> tuple[Any, ...]:
        systems, weights = tuple(self.systems.items()), tuple(self.weights.items())
        return systems, weights, self.normalization, self.candidates


def fuse(
    runs: Mapping[str, pd.DataFrame],
    weights: Mapping[str, float],
    *,
    normalization: str = "zscore",
    candidates: str = "first",
) -> pd.DataFrame:
    """Fuse runs as `HarpFusion` fuses what systems return.

    Args:
        runs: columns ``qid``, ``docno`` and ``score``, by the names of the systems.
        weights: see `HarpFusion`.
        normalization: see `HarpFusion`.
        candidates: see `HarpFusion`.

    Returns:
        The columns that all runs have, with new ``score`` and ``rank``.

    Raises:
        HarpError: a run or an argument is at fault.
    """
    check_fusion(runs, normalization, candidates)
    weights = check_weights(list(runs), weights)
    first = next(iter(runs))
    used = {name: run for name, run in runs.items() if name == first or weights[name] > 0}
    return _fused(used, weights, normalization, candidates)


def _fused(
    frames: dict[str, pd.DataFrame],
    weights: Mapping[str, float],
    normalization: str,
    candidates: str,
) -> pd.DataFrame:
    """Rank the candidates of frames; the first frame may have the weight 0."""
    first = next(iter(frames))
    if candidates == "union" and weights[first] == 0:
        frames = {name: frame for name, frame in frames.items() if name != first}
    fused = read_candidates(frames, normalization=normalization, candidates=candidates)
    scores = [weights[name] for name in frames] @ fused.scores
    rows = pd.concat(list(frames.values()), join="inner", ignore_index=True)
    rows = rows.drop(columns=["score", "rank"], errors="ignore")
    result = rows.iloc[fused.rows].reset_index(drop=True).assign(score=scores)
    query = result.groupby("qid", sort=False).ngroup()
    order = np.lexsort((-result["score"], query))
    return pt.model.add_ranks(result.iloc[order].reset_index(drop=True))


def _rest_of(pipeline: pt.Transformer, first: pt.Transformer) -> pt.Transformer | None:
    """What a pipeline does after its first stages, if those are the first system."""
    stages, head = _stages(pipeline), _stages(first)
    if len(stages) <= len(head) or stages[: len(head)] != head:
        return None
    rest = stages[len(head) :]
    return rest[0] if len(rest) == 1 else pt.Compose(*rest)


def _stages(pipeline: pt.Transformer) -> list[pt.Transformer]:
    return list(pipeline) if isinstance(pipeline, pt.Compose) else [pipeline]
