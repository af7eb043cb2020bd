"""HTML becomes sections of clean text with the links' exact places."""

from .document import MAX_PAGE, Document, decode, read_document
from .page import read_page
from .rules import Rules, WebRules

__all__ = ["MAX_PAGE", "Document", "Rules", "WebRules", "decode", "read_document", "read_page"]
