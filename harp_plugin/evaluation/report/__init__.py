"""The report of an evaluation: one HTML page with table, bars, and queries won and lost."""

from .page import render
from .queries import ChangedQuery, Shown, changed_queries
from .rows import Row, rows_of

__all__ = ["ChangedQuery", "Row", "Shown", "changed_queries", "render", "rows_of"]
