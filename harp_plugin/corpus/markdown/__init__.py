"""Markdown of documentation becomes sections of clean text with the exact places of its links."""

from .address import MarkdownAddress
from .dialects import Layout, configurations, find_layout
from .includes import is_fragment, with_includes
from .notebook import notebook_markdown
from .page import markdown_items
from .site import PAGE_SUFFIXES, Site

__all__ = [
    "PAGE_SUFFIXES",
    "Layout",
    "MarkdownAddress",
    "Site",
    "configurations",
    "find_layout",
    "is_fragment",
    "markdown_items",
    "notebook_markdown",
    "with_includes",
]
