"""The report of an evaluation: one HTML page with table, bars, and queries won and lost."""

from .page import render
from .queries import changed_queries
from .rows import rows_of

__all__ = ["changed_queries", "render", "rows_of"]
