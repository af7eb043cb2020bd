"""Wikitext becomes sections of clean text with the exact places of its links."""

from .page import CANONICAL_NAMESPACES, DEBRIS, MEDIA_NAMESPACES, Site, parse_page, wiki_language

__all__ = [
    "CANONICAL_NAMESPACES",
    "DEBRIS",
    "MEDIA_NAMESPACES",
    "Site",
    "parse_page",
    "wiki_language",
]
