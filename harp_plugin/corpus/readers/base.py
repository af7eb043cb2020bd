"""The interface of a reader of one source format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from ..pages import Item
from .source import Source

__all__ = ["Reader"]


class Reader(Protocol):
    """Reads one source format.

    `records` runs in one process and should be cheap; `parse` runs in many processes. A record
    that holds more than one page has their number as its attribute ``pages``. A reader with a
    method ``configure(options)`` gets the options of the corpus stage before `records` runs; what
    `parse` needs of them belongs into the records.
    """

    def recognizes(self, source: Source) -> bool:
        """Tell whether a source has this format, by its ``head`` or its ``collection``."""

    def records(self, source: Source) -> Iterator[Any]:
        """Stream picklable records of at most 64 MiB each; records of type Dropped are counted.

        Raises:
            HarpError: the source is damaged; the message names the source and the position.
        """

    def parse(self, record: Any) -> Iterable[Item]:
        """Turn one record into pages and redirects, or say why it is dropped."""
