"""Readers of hyperlinked sources, one file per format, and their registry.

Other packages add theirs by an entry point in the group ``harp_plugin.readers``.
"""

from .base import READERS, Reader, choose_reader
from .clueweb22 import ClueWeb22Reader
from .harp_anchors import HarpAnchorsReader
from .html import HtmlReader
from .irds import IrDatasetsReader
from .kilt import KiltReader
from .mediawiki import MediaWikiReader
from .source import Source, sources
from .warc import WarcReader
from .wikiextractor import WikiExtractorReader
from .wikimedia_enterprise import WikimediaEnterpriseReader

__all__ = [
    "READERS",
    "ClueWeb22Reader",
    "HarpAnchorsReader",
    "HtmlReader",
    "IrDatasetsReader",
    "KiltReader",
    "MediaWikiReader",
    "Reader",
    "Source",
    "WarcReader",
    "WikiExtractorReader",
    "WikimediaEnterpriseReader",
    "choose_reader",
    "sources",
]
