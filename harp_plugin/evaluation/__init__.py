"""Evaluation: PyTerrier experiments on ir_datasets collections, as tables with tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_attributes
from .options import EvaluationOptions

if TYPE_CHECKING:
    from .experiment import evaluate
    from .results import Results

__all__ = ["EvaluationOptions", "Results", "evaluate"]

__getattr__ = lazy_attributes(__name__, {"evaluate": ".experiment", "Results": ".results"})
