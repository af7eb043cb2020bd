"""What every reader of a hyperlinked source offers, and their registry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from ...errors import HarpError
from ...registry import Registry
from ..pages import Item
from .source import Source


class UnknownFormat(HarpError):
    """No reader recognises a source."""


class Reader(Protocol):
    """Reads one source format.

    `records` streams in one process and should be cheap; `parse` runs in many. A record that holds
    more than one page says how many by an attribute ``pages``.
    """

    def recognises(self, source: Source) -> bool:
        """Whether a source is of this format, by its ``head`` or the name of its ``collection``."""

    def records(self, source: Source) -> Iterator[Any]:
        """Stream picklable records, of at most 64 MiB each; those of type Dropped are counted.

        Raises:
            HarpError: the source is damaged; the message names it and the position.
        """

    def parse(self, record: Any) -> Iterable[Item]:
        """Turn one record into pages and redirects, or say why it is dropped."""


READERS: Registry[type[Reader]] = Registry("harp_plugin.readers", "reader")


def choose_reader(source: Source, name: str = "auto") -> str:
    """Find the reader for a source, by name or by what the source looks like.

    Raises:
        HarpError: no reader has this name, or another package's cannot be loaded.
        UnknownFormat: no reader recognises the source.
    """
    if name != "auto":
        READERS[name]
        return name
    broken: list[str] = []
    try:
        for known in READERS:
            try:
                reader = READERS[known]()
            except HarpError as error:  # one that nobody asked for
                broken.append(str(error))
                continue
            if reader.recognises(source):
                return known
    finally:
        source.forget_head()
    raise UnknownFormat(
        f"{source.path or source.name} is in no known format: "
        f"readers are {', '.join(READERS)}; name one by --reader"
        + "".join(f" ({message})" for message in broken)
    )
