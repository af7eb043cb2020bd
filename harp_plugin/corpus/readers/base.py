"""What every reader of a hyperlinked source offers."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Protocol

from ...errors import HarpError
from ...registry import Registry
from ..pages import Item

_DECOMPRESSORS: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"BZh": bz2.BZ2File,
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"\xfd7zXZ": lzma.LZMAFile,
}


class Reader(Protocol):
    """Reads one source format.

    `records` streams in one process and should be cheap; `parse` runs in many.
    """

    def recognises(self, head: bytes) -> bool:
        """Whether a source that starts with these (decompressed) bytes is of this format."""

    def records(self, file: IO[bytes], name: str) -> Iterator[Any]:
        """Stream picklable records from an opened, decompressed source.

        Raises:
            HarpError: the source is damaged; the message names it and the position.
        """

    def parse(self, record: Any) -> Iterable[Item]:
        """Turn one record into pages and redirects, or say why it is dropped."""


READERS: Registry[type[Reader]] = Registry("harp_plugin.readers", "reader")


def open_source(path: Path) -> tuple[IO[bytes], IO[bytes]]:
    """Open a source, decompressing bzip2, gzip and xz by their first bytes.

    Returns:
        The decompressed file, and the raw file whose ``tell()`` gives the progress.

    Raises:
        HarpError: there is no such file.
    """
    if not path.is_file():
        raise HarpError(f"no source at {path}: check the path")
    raw = path.open("rb")
    head = raw.read(8)
    raw.seek(0)
    for magic, decompress in _DECOMPRESSORS.items():
        if head.startswith(magic):
            return decompress(raw), raw
    return raw, raw


def choose_reader(path: Path, name: str = "auto") -> tuple[str, Reader]:
    """Find the reader for a source, by name or by the source's first bytes.

    Raises:
        HarpError: no reader has this name, or none recognises the source.
    """
    if name != "auto":
        return name, READERS[name]()
    file, raw = open_source(path)
    try:
        with file, raw:
            head = file.read(65536)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise HarpError(f"{path} cannot be decompressed ({error}): fetch it again") from error
    for known in READERS:
        reader = READERS[known]()
        if reader.recognises(head):
            return known, reader
    raise HarpError(
        f"{path} is in no known format: readers are {', '.join(READERS)}; name one by --reader"
    )
