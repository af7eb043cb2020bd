"""HTML becomes sections of clean text with the exact places of its links."""

from .document import LONG_PAGE, MAX_PAGE, Document, decode, read_document
from .page import read_page
from .parsoid import ParsoidRules
from .rules import HtmlRules, WebRules

__all__ = [
    "LONG_PAGE",
    "MAX_PAGE",
    "Document",
    "HtmlRules",
    "ParsoidRules",
    "WebRules",
    "decode",
    "read_document",
    "read_page",
]
