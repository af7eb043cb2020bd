"""Fine-tuning and evaluation by k folds, at several numbers of training queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import lazy_attributes
from .options import CrossValidationOptions

if TYPE_CHECKING:
    from .experiment import cross_validate
    from .results import CrossValidation

__all__ = ["CrossValidation", "CrossValidationOptions", "cross_validate"]

__getattr__ = lazy_attributes(
    __name__, {"cross_validate": ".experiment", "CrossValidation": ".results"}
)
