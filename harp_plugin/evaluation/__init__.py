"""Evaluation: PyTerrier experiments on ir_datasets collections, as tables with tests.

Importing this package registers the ir_datasets dataset ``harp-encyclopedia``, where ir_datasets is
installed.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .options import EvaluationOptions

if TYPE_CHECKING:
    from .experiment import evaluate
    from .results import Results

__all__ = ["EvaluationOptions", "Results", "evaluate"]

if find_spec("ir_datasets") is not None:
    from ..collections.encyclopedia import register

    register()


def __getattr__(name: str) -> Any:
    if name == "evaluate":
        from .experiment import evaluate

        return evaluate
    if name == "Results":
        from .results import Results

        return Results
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
