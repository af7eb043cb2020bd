"""Pre-training tasks: examples become groups of a positive pair and its negatives."""

from .groups import DocumentOrigin, Pair, PairGroup, QueryOrigin, SampledWord
from .options import PRESETS, DrawOptions
from .pretraining import NoPairError, PreTrainingData
from .registry import HARP_TASKS, TASKS

__all__ = [
    "HARP_TASKS",
    "PRESETS",
    "TASKS",
    "DocumentOrigin",
    "DrawOptions",
    "NoPairError",
    "Pair",
    "PairGroup",
    "PreTrainingData",
    "QueryOrigin",
    "SampledWord",
]
