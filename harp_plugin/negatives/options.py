"""Options of finding hard negatives."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..limits import Limits, check_limits
from ..options import flag

__all__ = ["NEGATIVES", "NegativeOptions"]

NEGATIVES = ("bm25", "model", "dense")
"""What finds hard negatives when a corpus is built."""


@dataclass
class NegativeOptions:
    """Which pages are kept for each query as its hard negatives.

    Raises:
        HarpError: a number is out of its range.
    """

    negatives_depth: int = field(
        default=30,
        metadata={"help": "How many pages --negatives keeps for each query."},
    )
    negatives_model: str | None = field(
        default=None,
        metadata={
            "help": "Cross-encoder that ranks the pages for --negatives model: a folder, a name on "
            "the Hugging Face hub, or package:NAME."
        },
    )
    negatives_encoder: str | None = field(
        default=None,
        metadata={
            "help": "Encoder that finds the pages for --negatives dense, such as a bi-encoder of "
            "`harp train`: a folder, a name on the Hugging Face hub, or package:NAME."
        },
    )

    def __post_init__(self) -> None:
        values = {flag("negatives_depth"): self.negatives_depth}
        check_limits(values, {flag("negatives_depth"): Limits(least=1, most=1000)})
