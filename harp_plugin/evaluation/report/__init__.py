"""The report of an evaluation: one HTML page with table, bars, and queries won and lost."""

from .page import render, rows_of
from .queries import changed_queries

__all__ = ["changed_queries", "render", "rows_of"]
