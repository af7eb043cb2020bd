"""Markdown of documentation becomes sections of clean text with the exact places of its links."""

from .address import PAGE_SUFFIXES, MarkdownAddress
from .includes import has_includes, is_fragment, with_includes
from .page import markdown_items
from .wiki_links import PageNames, linked_names

__all__ = [
    "PAGE_SUFFIXES",
    "MarkdownAddress",
    "PageNames",
    "has_includes",
    "is_fragment",
    "linked_names",
    "markdown_items",
    "with_includes",
]
