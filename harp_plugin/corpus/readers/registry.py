"""What a reader is, the registry of readers, and the choice of the reader for a source.

Other packages add readers by an entry point in the group ``harp_plugin.readers``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from ...errors import HarpError
from ...registry import Registry
from ..options import CorpusOptions
from ..pages import Item
from .clueweb22 import ClueWeb22Reader
from .harp_anchors import HarpAnchorsReader
from .html import HtmlReader
from .irds import IrDatasetsReader
from .kilt import KiltReader
from .markdown import MarkdownReader
from .mediawiki import MediaWikiReader
from .source import Source
from .warc import WarcReader
from .wikimedia_enterprise import WikimediaEnterpriseReader

__all__ = [
    "OTHER_FORMAT",
    "READERS",
    "Reader",
    "UnknownFormat",
    "choose_reader",
    "configured_reader",
]


class Reader(Protocol):
    """Reads one source format.

    `records` runs in one process and should be cheap; `parse` runs in many processes. A record
    that holds more than one page has their number as its attribute ``pages``. A reader with a
    method ``configure(options)`` gets the options of the corpus stage before `records` runs; what
    `parse` needs of them belongs into the records. What a reader counts in its attribute ``counts``
    stands in the summary of the build.
    """

    def recognizes(self, source: Source) -> bool:
        """Return whether a source has this format, by its ``head`` or its ``collection``."""

    def records(self, source: Source) -> Iterator[Any]:
        """Stream picklable records of at most 64 MiB each; records of type Dropped are counted.

        Raises:
            HarpError: the source is damaged; the message names the source and the position.
        """

    def parse(self, record: Any) -> Iterable[Item]:
        """Turn one record into pages and redirects, or say why it is dropped."""


READERS: Registry[type[Reader]] = Registry(
    "harp_plugin.readers",
    "reader",
    {
        "markdown": MarkdownReader,
        "clueweb22": ClueWeb22Reader,
        "harp-anchors": HarpAnchorsReader,
        "html": HtmlReader,
        "kilt": KiltReader,
        "irds": IrDatasetsReader,
        "mediawiki": MediaWikiReader,
        "warc": WarcReader,
        "wikimedia-enterprise": WikimediaEnterpriseReader,
    },
)
"""Readers by name. A source goes to the first one that recognizes it."""


OTHER_FORMAT = (
    "name one by --reader, or convert the source (Sphinx and Asciidoctor write HTML, pandoc writes "
    "Markdown)"
)
"""What to do with a source that no reader recognizes."""


class UnknownFormat(HarpError):
    """No reader recognizes a source."""


def choose_reader(source: Source, name: str = "auto") -> str:
    """Return the name of the reader for a source.

    Args:
        source: the source to read.
        name: the name of a reader, or ``auto`` for the first reader that recognizes the source.

    Raises:
        HarpError: no reader has this name, or the reader of another package cannot be loaded.
        UnknownFormat: no reader recognizes the source.
    """
    if name != "auto":
        READERS[name]
        return name
    load_errors: list[str] = []
    try:
        for reader_name in READERS:
            try:
                reader = READERS[reader_name]()
            except HarpError as error:  # a broken reader stops only those who ask for it
                load_errors.append(str(error))
                continue
            if reader.recognizes(source):
                return reader_name
    finally:
        source.forget_head()
    raise UnknownFormat(
        f"{source.path or source.name} is in no known format: "
        f"readers are {', '.join(READERS)}; {OTHER_FORMAT}"
        + "".join(f" ({message})" for message in load_errors)
    )


def configured_reader(name: str, options: CorpusOptions) -> Reader:
    """Return a reader that has got the options of the corpus stage.

    Raises:
        HarpError: no reader has this name, or it cannot be loaded.
    """
    reader = READERS[name]()
    configure = getattr(reader, "configure", None)
    if configure is not None:
        configure(options)
    return reader
