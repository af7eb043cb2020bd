"""`harp inspect` shows whether the pairs of a build make sense: counts, checks and samples."""

from .report import InspectionReport
from .run import InspectOptions, inspect

__all__ = ["InspectOptions", "InspectionReport", "inspect"]
