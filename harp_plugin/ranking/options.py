"""The options of scoring: each has its name, type, limits, default and help here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from ..options import MOST, Count, Device, Interval, Options, Seed, option

__all__ = [
    "Dtype",
    "EnsembleOptions",
    "MaxLength",
    "ModelOptions",
    "PassageOptions",
    "Passages",
    "ScoreNormalization",
    "ScoringOptions",
    "WindowOptions",
    "dtype_name",
]

Dtype = Literal["float32", "bfloat16", "float16"]
Passages = Literal["first", "max", "mean", "top2", "matching"]
ScoreNormalization = Literal["minmax", "zscore"]
MaxLength = Annotated[int, Interval(ge=4, le=MOST)]
"""Tokens of a pair; each model says more exactly what it takes."""
_SHORT_DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


def dtype_name(dtype: Any) -> str:
    """The name of a type of numbers that may be written ``bf16`` or ``torch.bfloat16`` as well."""
    name = str(dtype).removeprefix("torch.")
    return _SHORT_DTYPES.get(name, name)


@dataclass(kw_only=True)
class ScoringOptions(Device):
    """How and where models score, and which texts they read."""

    fields: list[str] | None = option(
        None,
        "Fields of a document whose texts are joined by a space; by default the text that the "
        "dataset recommends.",
    )
    batch_tokens: Count | None = option(
        None, "How many tokens a batch has; by default what memory allows."
    )
    dtype: Dtype = option(
        "float32",
        "Type of the numbers that scores are computed with: float32, bfloat16 or float16.",
    )


@dataclass(kw_only=True)
class PassageOptions(Options):
    """What is scored of a long document."""

    passages: Passages = option(
        "first",
        "What scores a document that is longer than the input of the model: its beginning (first); "
        "the max, the mean or the mean of the two best (top2) scores of its windows; or its first "
        "words and the passage that shares most words with the query (matching).",
    )


@dataclass(kw_only=True)
class WindowOptions(PassageOptions):
    """How a long document is cut."""

    passage_length: Count | None = option(
        None, "How many tokens a window has; by default what fits together with the query."
    )
    passage_stride: Count | None = option(
        None,
        "How many tokens lie between the starts of two windows; by default half a window.",
    )


@dataclass(kw_only=True)
class EnsembleOptions(Options):
    """How the scores of several models are added up."""

    weights: list[Annotated[float, Interval(ge=0, le=1e9)]] | None = option(
        None, "The weight of each model's scores; equal ones by default."
    )
    score_normalization: ScoreNormalization | None = option(
        None, "Scale each model's scores of a query before they are added: minmax or zscore."
    )


@dataclass(kw_only=True)
class ModelOptions(WindowOptions, EnsembleOptions):
    """The options of one reranker that change its scores."""

    model: str | list[str] = option(help="A model, or the models of an ensemble.")
    max_length: MaxLength | None = option(
        None, "How many tokens a pair has at most; by default what the model allows."
    )
    dtype: Dtype = option("float32", "Type of the numbers that scores are computed with.")
    allow_untrained: bool = option(
        False, "Score with random weights where the checkpoint has none."
    )
    seed: Seed = option(42, "Seed by which the weights of untrained heads are drawn.")
