"""Several rerankers over the same texts: an ensemble, or one feature from each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt

from ..errors import HarpError
from ..options import checked
from .base import ComparedTransformer
from .candidates import SCALES
from .frames import first_stage_order, rerank_frame
from .options import ScoreNormalization
from .rows import Reranker, score_rows

__all__ = ["HarpEnsemble", "HarpFeatures"]

_ONE_QUERY = np.zeros(1, dtype=np.int64)


@dataclass(eq=False, repr=False)
class _Combined(ComparedTransformer):
    """What an ensemble and features have in common."""

    rerankers: Sequence[Reranker]

    def __post_init__(self) -> None:
        self.rerankers = tuple(self.rerankers)
        if not self.rerankers:
            raise HarpError("no reranker to combine: name at least one")
        if len({_text_source(reranker) for reranker in self.rerankers}) > 1:
            raise HarpError(
                "rerankers of different text fields or datasets cannot be combined: use the same"
            )

    def _score(self, frame: pd.DataFrame) -> np.ndarray:
        self.rerankers[0].validate(frame, context=self)
        return score_rows(self.rerankers, frame)

    def _comparison_key(self) -> tuple[Any, ...]:
        return (self.rerankers,)


@dataclass(eq=False, repr=False, kw_only=True)
class HarpEnsemble(_Combined):
    """Rerank by the weighted mean of several rerankers' scores; see `HarpReranker.ensemble`.

    Args:
        rerankers: they have equal text fields and datasets.
        weights: one per reranker; equal ones by default.
        score_normalization: ``minmax``, ``zscore`` or None.

    Raises:
        HarpError: an argument makes no sense.
    """

    schematic = {"label": "HarpEnsemble", "help_url": None, "inner_pipelines_mode": "combine"}  # noqa: RUF012

    weights: Sequence[float] | None = None
    score_normalization: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.weights = None if self.weights is None else tuple(self.weights)
        count = len(self.rerankers)
        if self.weights is not None and len(self.weights) != count:
            raise HarpError(f"{len(self.weights)} weights for {count} models: give one for each")
        if self.weights and not (min(self.weights) >= 0 and 0 < sum(self.weights) < math.inf):
            raise HarpError(
                f"weights are {list(self.weights)}: none may be negative or infinite, not all zero"
            )
        checked("score_normalization", ScoreNormalization | None, self.score_normalization)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Score and rank each row's document for its query, as `HarpReranker.transform` does."""
        scores = self._score(inp)
        if self.score_normalization is not None:
            normalize = SCALES[self.score_normalization]
            for rows in inp.reset_index(drop=True).groupby("qid", sort=False).indices.values():
                scores[rows] = normalize(scores[rows].T, _ONE_QUERY).T
        weights = np.array(self.weights or [1] * len(self.rerankers), dtype=np.float64)
        return rerank_frame(inp, scores @ (weights / weights.sum()))

    def _comparison_key(self) -> tuple[Any, ...]:
        weights = self.weights or (1,) * len(self.rerankers)
        return (self.rerankers, weights, self.score_normalization)


class HarpFeatures(_Combined):
    """The scores of several rerankers as ``features``: what ``(a ** b).compile()`` makes.

    Args:
        rerankers: they have equal text fields and datasets; one feature each, in their order.

    Raises:
        HarpError: there is none, or they read different texts.
    """

    schematic = {"label": "HarpFeatures **", "help_url": None, "inner_pipelines_mode": "linked"}  # noqa: RUF012

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Add the column ``features``, and keep all else as PyTerrier's ``**`` does.

        Returns:
            The rows with (rerankers,) float64 features each.
        """
        scores = self._score(inp)
        result = inp.reset_index(drop=True)
        if "rank" not in result.columns:
            ordered = result.assign(score=scores[:, 0]).iloc[first_stage_order(inp)]
            result["rank"] = pt.model.add_ranks(ordered)["rank"]
        return result.assign(features=pd.Series(list(scores), dtype=object))

    def fuse_feature_union(self, other: pt.Transformer, is_left: bool) -> pt.Transformer | None:
        """Join the features of two transformers, where both read the same texts.

        Args:
            other: the other side of ``**``.
            is_left: whether the own features come first.

        Returns:
            One transformer that reads and tokenizes texts once; None where there is none.
        """
        if not isinstance(other, HarpFeatures):
            return None
        left, right = (self, other) if is_left else (other, self)
        if _text_source(left.rerankers[0]) != _text_source(right.rerankers[0]):
            return None
        return HarpFeatures([*left.rerankers, *right.rerankers])


def _text_source(reranker: Reranker) -> tuple[Any, Any]:
    return reranker.texts.name, reranker.texts.fields
