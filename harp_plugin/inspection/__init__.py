"""`harp inspect`: do the pairs of a build make sense? Counts, and sample pairs to look at."""

from .options import InspectOptions
from .report import InspectionReport, inspect

__all__ = ["InspectOptions", "InspectionReport", "inspect"]
