"""Fine-tuning and evaluation by k folds, at several numbers of training queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .options import CrossValidationOptions

if TYPE_CHECKING:
    from .experiment import cross_validate
    from .results import CrossValidation

__all__ = ["CrossValidation", "CrossValidationOptions", "cross_validate"]


def __getattr__(name: str) -> Any:
    if name == "cross_validate":
        from .experiment import cross_validate

        return cross_validate
    if name == "CrossValidation":
        from .results import CrossValidation

        return CrossValidation
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
