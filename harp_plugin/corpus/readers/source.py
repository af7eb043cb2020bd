"""Sources of a build: files and collections of ir_datasets, opened and decompressed."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from ...errors import HarpError
from ...work.urls import RemoteFile, files_at, is_url
from ..pages import Dropped

__all__ = [
    "COLLECTION",
    "LONG_RECORD",
    "LONG_TEXT",
    "MAX_RECORD",
    "MAX_TEXT",
    "Source",
    "decompressed",
    "is_passed_over",
    "numbered_lines",
    "printable",
    "sources",
]

MAX_RECORD = 64 << 20
"""The size of the longest record that is read, in bytes; a longer one is dropped."""
LONG_RECORD = Dropped("page over 64 MiB")
MAX_TEXT = 4 << 20
"""The length of the longest page that is parsed, in characters; MediaWiki allows 2 MiB."""
LONG_TEXT = Dropped("page of over four million characters")
COLLECTION = "irds:"
"""The prefix of the names of collections."""
_HEAD_SIZE = 1 << 16
_BLOCK = 1 << 20
_COMPRESSED_BLOCK = 1 << 13
_BUFFER = _HEAD_SIZE  # `head` reads no further: the end of a file may be missing
_MAX_MEMORY = 1 << 29
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


@dataclass
class Source:
    """A file, or a collection of ir_datasets.

    Attributes:
        name: the name in messages and keys: the path below the folder that the user named, else the
            name of the file, or ``irds:`` and the name of the collection.
        path: the path of the file; None for a collection or a file at a URL.
        remote: the file at a URL, which is read as it comes.
        folder: the folder that the user named, if the file was found in one.
        named: the files that the user named beside this one, itself included.
    """

    name: str
    path: Path | None = None
    remote: RemoteFile | None = None
    folder: Path | None = None
    named: Sequence[Path] = field(default=(), repr=False)
    _raw: IO[bytes] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.name = printable(self.name)

    @property
    def collection(self) -> str | None:
        """The name of the collection in ir_datasets; None for a file."""
        return None if self.path or self.remote else self.name.removeprefix(COLLECTION)

    @property
    def size(self) -> int:
        """The size of the file in bytes; 0 for a collection."""
        if self.remote is not None:
            return self.remote.size
        return self.path.stat().st_size if self.path else 0

    @property
    def position(self) -> int:
        """How many bytes of the file have been read so far, before decompression."""
        if self._raw is None:
            return 0
        return self.size if self._raw.closed else self._raw.tell()

    @cached_property
    def head(self) -> bytes:
        """The first 64 KiB, decompressed; empty for a collection."""
        if self.collection is not None:
            return b""
        with self.open() as file:
            return file.read(_HEAD_SIZE)

    def forget_head(self) -> None:
        """Free the memory of `head`, as a folder may hold millions of files."""
        self.__dict__.pop("head", None)

    @contextmanager
    def open(self, *, decompress: bool = True) -> Iterator[IO[bytes]]:
        """Open the file and decompress it, if it is compressed.

        The first bytes tell whether the file is compressed by bzip2, gzip, xz or zstandard.

        Raises:
            HarpError: the file is missing, or cannot be read or decompressed.
        """
        if self.collection is not None:
            raise HarpError(f"{self.name} is a collection, not a file: name another --reader")
        if self.path is not None and not self.path.is_file():
            raise HarpError(f"no source at {self.path}: check the path")
        try:
            with self._open() as raw:
                self._raw = raw
                with decompressed(raw) if decompress else raw as file:
                    yield file
        except EOFError as error:
            raise HarpError(f"{self.name} is truncated ({error}): fetch it again") from error
        except PermissionError as error:
            raise HarpError(f"{self.name} may not be read: change its permissions") from error
        except (OSError, zlib.error, lzma.LZMAError) as error:
            raise HarpError(f"{self.name} cannot be read ({error}): fetch it again") from error

    def _open(self) -> AbstractContextManager[IO[bytes]]:
        if self.remote is not None:
            return self.remote.open()
        assert self.path is not None
        return self.path.open("rb")

    def lines(self) -> Iterator[tuple[int, bytes] | Dropped]:
        """Stream the lines that are not blank, with their numbers from 1.

        A line over 64 MiB is dropped, and never held in memory.
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


def sources(name: str | Path) -> list[Source]:
    """Return the sources that the user named.

    A folder stands for all files below it, in the order of their paths, without hidden files and
    without the indexes of multistream dumps.

    Args:
        name: a file, a folder, the URL of one, or ``irds:`` and the name of a collection.

    Raises:
        HarpError: there is no such file or folder, or the folder is empty, or has a folder that
            this user may not read.
    """
    if str(name).startswith(COLLECTION):
        return [Source(str(name))]
    if is_url(name):
        files = [Source(file.name, remote=file) for file in files_at(str(name))]
        if len(files) == 1:
            return files
    else:
        path = Path(name)
        if path.is_file():
            return [Source(path.name, path)]
        if not path.is_dir():
            raise HarpError(f"no source at {path}: check the path")
        paths = (file for file in _files_below(path) if file.is_file())
        files = [Source(file.relative_to(path).as_posix(), file, folder=path) for file in paths]
    files = [file for file in files if not is_passed_over(file.name)]
    if not files:
        raise HarpError(f"no file in {name}: check the path")
    return files


def _files_below(folder: Path) -> list[Path]:
    """List the files of a folder and of those in it, without hidden folders."""

    def refuse(error: OSError) -> None:
        raise HarpError(
            f"folder {error.filename} cannot be read ({error.strerror}): change its permissions"
        ) from error

    files: list[Path] = []
    for parent, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files += [Path(parent, name) for name in names]
    return sorted(files)


def printable(name: str) -> str:
    """Replace control characters and halves of surrogate pairs in a name."""
    return _UNPRINTABLE.sub("\ufffd", name)


def is_passed_over(name: str) -> bool:
    """Return whether a file in a folder is hidden, or the index of a multistream dump."""
    *_, file = parts = name.split("/")
    return any(part.startswith(".") for part in parts) or "-multistream-index" in file


class _ConcatenatedStreams(io.RawIOBase):
    """Decompresses all streams of a file.

    The classes of the standard library stop without an error where the data between two streams
    are damaged; here, this is an error.

    Args:
        file: the compressed file, at its start.
        decompressor: makes a decompressor for each stream.
    """

    def __init__(self, file: IO[bytes], decompressor: Callable[[], Any]) -> None:
        self._compressed = file
        self._decompressor = decompressor
        self._stream = decompressor()

    def readable(self) -> bool:
        """Return true."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read decompressed bytes into a buffer and return their number.

        Raises:
            OSError, lzma.LZMAError: a stream is damaged, or needs more than 512 MiB of memory.
            EOFError: the last stream is truncated.
        """
        decompressed = b""
        while not decompressed:
            data = b""
            if self._stream.eof:
                data = self._next_stream()
                if not data:
                    return 0
                self._stream = self._decompressor()
            elif self._stream.needs_input:
                data = self._compressed.read(_COMPRESSED_BLOCK)
                if not data:
                    raise EOFError("the last stream has no end")
            decompressed = self._stream.decompress(data, len(buffer))
        buffer[: len(decompressed)] = decompressed
        return len(decompressed)

    def _next_stream(self) -> bytes:
        """Return the start of the next stream, behind zeros; empty at the end of the file."""
        data = self._stream.unused_data or self._compressed.read(_COMPRESSED_BLOCK)
        while data and not data.strip(b"\0"):
            data = self._compressed.read(_COMPRESSED_BLOCK)
        return data.lstrip(b"\0")


_xz = partial(lzma.LZMADecompressor, memlimit=_MAX_MEMORY)
_DECOMPRESSORS: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"BZh": partial(_ConcatenatedStreams, decompressor=bz2.BZ2Decompressor),
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"\xfd7zXZ": partial(_ConcatenatedStreams, decompressor=_xz),
    b"\x28\xb5\x2f\xfd": lambda file: pa.CompressedInputStream(file, "zstd"),
}


def decompressed(file: IO[bytes]) -> IO[bytes]:
    """Decompress a file, if its first bytes are those of bzip2, gzip, xz or zstandard."""
    start = file.read(8)
    file.seek(0)
    for magic, opened in _DECOMPRESSORS.items():
        if start.startswith(magic):
            return io.BufferedReader(opened(file), _BUFFER)
    return file
