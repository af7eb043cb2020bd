"""Evaluation: PyTerrier experiments on ir_datasets collections, as tables with tests."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .options import EvaluationOptions

if TYPE_CHECKING:
    from .experiment import evaluate
    from .results import Results

__all__ = ["EvaluationOptions", "Results", "evaluate"]

_MODULES = {"evaluate": ".experiment", "Results": ".results"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
