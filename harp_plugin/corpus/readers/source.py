"""What a reader is given: a file or a named collection, opened and decompressed."""

from __future__ import annotations

import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from ...errors import HarpError
from ..pages import Dropped
from .streams import bzip2, xz

HEAD_SIZE = 1 << 16
MAX_RECORD = 64 << 20
"""Bytes of the longest record that is read; a longer one is dropped."""
MAX_TEXT = 4 << 20
"""Characters of the longest text of a page that is parsed; MediaWiki takes 2 MiB."""
TOO_LONG = Dropped("page of over four million characters")
COLLECTION = "irds:"
_BLOCK = 1 << 20
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


def _zstandard(file: IO[bytes]) -> IO[bytes]:
    return io.BufferedReader(pa.CompressedInputStream(file, "zstd"), _BLOCK)


def _seven_zip(file: IO[bytes]) -> IO[bytes]:
    from .seven_zip import SevenZipFile

    return io.BufferedReader(SevenZipFile(file), _BLOCK)


_DECOMPRESSORS: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"BZh": bzip2,
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"\xfd7zXZ": xz,
    b"\x28\xb5\x2f\xfd": _zstandard,
    b"7z\xbc\xaf\x27\x1c": _seven_zip,
}


@dataclass
class Source:
    """One input: a file, or a collection of ir_datasets.

    Attributes:
        name: how messages and keys name it: the path below the folder that was given, else the
            file's name, or ``irds:`` and the collection's name.
        path: where it lies; None for a collection.
        position: compressed bytes of it that have been read so far.
    """

    name: str
    path: Path | None = None
    _raw: IO[bytes] | None = field(default=None, repr=False)
    _file: IO[bytes] | None = field(default=None, repr=False)

    @property
    def collection(self) -> str | None:
        """Name of the collection in ir_datasets; None for a file."""
        return None if self.path else self.name.removeprefix(COLLECTION)

    @property
    def size(self) -> int:
        """Size of the file in bytes; 0 for a collection."""
        return self.path.stat().st_size if self.path else 0

    @property
    def position(self) -> int:
        """How many bytes of the file have been read, at most."""
        if self._raw is None:
            return 0
        return self.size if self._raw.closed else self._raw.tell()

    @property
    def decompressed(self) -> int:
        """How many bytes have been read from the decompressed file, while it is open."""
        return 0 if self._file is None or self._file.closed else self._file.tell()

    @cached_property
    def head(self) -> bytes:
        """The first 64 KiB, decompressed; empty for a collection."""
        if self.path is None:
            return b""
        with self.open() as file:
            return file.read(HEAD_SIZE)

    def forget_head(self) -> None:
        """Free the memory of `head`: a folder may hold millions of files."""
        self.__dict__.pop("head", None)

    @contextmanager
    def open(self, *, decompress: bool = True) -> Iterator[IO[bytes]]:
        """Open the file; bzip2, gzip, xz, zstandard and 7z are told by the first bytes.

        Raises:
            HarpError: there is no such file, or it cannot be read or decompressed.
        """
        if self.path is None:
            raise HarpError(f"{self.name} is a collection, not a file: name another --reader")
        if not self.path.is_file():
            raise HarpError(f"no source at {self.path}: check the path")
        try:
            with self.path.open("rb") as raw:
                self._raw = self._file = raw
                magic = raw.read(8)
                raw.seek(0)
                found = [make for known, make in _DECOMPRESSORS.items() if magic.startswith(known)]
                if not (decompress and found):
                    yield raw
                    return
                with found[0](raw) as self._file:
                    yield self._file
        except EOFError as error:
            raise HarpError(f"{self.name} is truncated ({error}): fetch it again") from error
        except (OSError, zlib.error, lzma.LZMAError) as error:
            raise HarpError(f"{self.name} cannot be read ({error}): fetch it again") from error

    def lines(self) -> Iterator[tuple[int, bytes] | Dropped]:
        """Stream the lines that are not blank, with their numbers from 1.

        A line over 64 MiB is dropped without being held in memory.
        """
        with self.open() as file:
            yield from numbered_lines(file)


def numbered_lines(file: IO[bytes]) -> Iterator[tuple[int, bytes] | Dropped]:
    """Stream the lines of an open file, as `Source.lines` does."""
    number = 0
    while line := file.readline(MAX_RECORD):
        number += 1
        if len(line) == MAX_RECORD and not line.endswith(b"\n"):
            while line and not line.endswith(b"\n"):
                line = file.readline(_BLOCK)
            yield Dropped("line over 64 MiB")
        elif line.strip():
            yield number, line


def sources(named: str | Path) -> list[Source]:
    """The sources that a name on the command line stands for.

    A folder stands for all files below it, in the order of their paths, without hidden ones and
    without the indexes of multistream dumps.

    Raises:
        HarpError: there is nothing.
    """
    if str(named).startswith(COLLECTION):
        return [Source(str(named))]
    path = Path(named)
    if path.is_file():
        return [Source(_printable(path.name), path)]
    if not path.is_dir():
        raise HarpError(f"no source at {path}: check the path")
    found = []
    for file in sorted(path.rglob("*")):
        below = file.relative_to(path)
        hidden = any(part.startswith(".") for part in below.parts)
        if file.is_file() and not hidden and "-multistream-index" not in file.name:
            found.append(Source(_printable(below.as_posix()), file))
    if not found:
        raise HarpError(f"no file in {path}: check the path")
    return found


def _printable(name: str) -> str:
    """A name that is text: one that is no UTF-8 or holds control characters is made it."""
    return _UNPRINTABLE.sub("\ufffd", name)
