"""Readers of hyperlinked sources, one file per format, and their registry.

Other packages add theirs by an entry point in the group ``harp_plugin.readers``.
"""

from .base import READERS, Reader, choose_reader
from .harp_anchors import HarpAnchorsReader
from .mediawiki import MediaWikiReader
from .source import Source, sources

__all__ = [
    "READERS",
    "HarpAnchorsReader",
    "MediaWikiReader",
    "Reader",
    "Source",
    "choose_reader",
    "sources",
]
