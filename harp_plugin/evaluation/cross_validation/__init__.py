"""Fine-tuning and evaluation by k folds, at several numbers of training queries."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .options import CrossValidationOptions

if TYPE_CHECKING:
    from .experiment import cross_validate
    from .results import CrossValidation

__all__ = ["CrossValidation", "CrossValidationOptions", "cross_validate"]

_MODULES = {"cross_validate": ".experiment", "CrossValidation": ".results"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
