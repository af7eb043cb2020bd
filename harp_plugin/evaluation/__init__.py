"""Evaluation: PyTerrier experiments on ir_datasets collections, as tables with tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .options import EvaluationOptions

if TYPE_CHECKING:
    from .experiment import evaluate
    from .results import Results

__all__ = ["EvaluationOptions", "Results", "evaluate"]


def __getattr__(name: str) -> Any:
    if name == "evaluate":
        from .experiment import evaluate

        return evaluate
    if name == "Results":
        from .results import Results

        return Results
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
