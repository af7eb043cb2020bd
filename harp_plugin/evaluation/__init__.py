"""Scores → tables: PyTerrier experiments on ir_datasets collections.

Importing this package registers the ir_datasets dataset ``harp-encyclopedia``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..collections.encyclopedia import register
from .options import EvaluationOptions

if TYPE_CHECKING:
    from .experiment import evaluate
    from .results import Results

__all__ = ["EvaluationOptions", "Results", "evaluate"]

register()


def __getattr__(name: str) -> Any:
    if name == "evaluate":
        from .experiment import evaluate

        return evaluate
    if name == "Results":
        from .results import Results

        return Results
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
