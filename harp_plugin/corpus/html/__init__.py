"""HTML becomes sections of clean text with the exact places of its links."""

from .document import LONG_PAGE, MAX_PAGE, Document, decode, read_document
from .index_terms import index_terms, is_index
from .page import read_page
from .parsoid import ParsoidRules
from .rules import Attributes, HtmlRules, WebRules

__all__ = [
    "LONG_PAGE",
    "MAX_PAGE",
    "Attributes",
    "Document",
    "HtmlRules",
    "ParsoidRules",
    "WebRules",
    "decode",
    "index_terms",
    "is_index",
    "read_document",
    "read_page",
]
