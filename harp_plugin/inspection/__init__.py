"""`harp inspect` shows whether the pairs of a build make sense: counts, checks and samples."""

from .options import InspectOptions
from .report import InspectionReport
from .run import inspect

__all__ = ["InspectOptions", "InspectionReport", "inspect"]
