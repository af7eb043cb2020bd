"""Options of weighing terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from ..options import Count, Options

__all__ = ["DTYPES", "WeightOptions"]

Dtype: TypeAlias = Literal["float32", "bfloat16"]
DTYPES: tuple[Dtype, ...] = get_args(Dtype)


@dataclass(kw_only=True)
class WeightOptions(Options):
    """How terms are weighed.

    Attributes:
        model: Encoder that weighs the terms: a folder, a name on the Hugging Face hub, or
            package:NAME for a Python package that carries one.
        unit: Unit that is weighed and drawn.
        anchor_row: Whose attention an anchor has: the mean over all its wordpieces (span), or that
            of the first one.
        batch_tokens: How many tokens a forward pass has (default: 2048 on a CPU, 65536 on a GPU).
        dtype: Type of the numbers that the encoder computes with (default: bfloat16 on a GPU,
            float32 on a CPU).
    """

    model: str = "bert-base-uncased"
    unit: Literal["word", "wordpiece"] = "word"
    anchor_row: Literal["span", "first_piece"] = "span"
    batch_tokens: Count | None = None
    dtype: Dtype | None = None
