"""Readers of hyperlinked sources, one file for each format, and their registry."""

from .clueweb22 import ClueWeb22Reader
from .harp_anchors import HarpAnchorsReader
from .html import HtmlReader
from .irds import IrDatasetsReader
from .kilt import KiltReader
from .markdown import MarkdownReader
from .mediawiki import MediaWikiReader
from .registry import READERS, Reader, UnknownFormat, choose_reader, configured_reader
from .source import Source, sources
from .warc import WarcReader
from .wikimedia_enterprise import WikimediaEnterpriseReader

__all__ = [
    "READERS",
    "ClueWeb22Reader",
    "HarpAnchorsReader",
    "HtmlReader",
    "IrDatasetsReader",
    "KiltReader",
    "MarkdownReader",
    "MediaWikiReader",
    "Reader",
    "Source",
    "UnknownFormat",
    "WarcReader",
    "WikimediaEnterpriseReader",
    "choose_reader",
    "configured_reader",
    "sources",
]
