"""Opens compressed files, which may hold several streams one after the other."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from collections.abc import Callable
from functools import partial
from typing import IO, Any

import pyarrow as pa

__all__ = ["ConcatenatedStreams", "bzip2", "find_decompressor"]

_BLOCK = 1 << 13
_BUFFER = 1 << 20
_MAX_MEMORY = 1 << 29


class ConcatenatedStreams(io.RawIOBase):
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
        self._size = 0

    def readable(self) -> bool:
        """Return true."""
        return True

    def tell(self) -> int:
        """Return how many decompressed bytes have been read."""
        return self._size

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
                data = self._compressed.read(_BLOCK)
                if not data:
                    raise EOFError("the last stream has no end")
            decompressed = self._stream.decompress(data, len(buffer))
        buffer[: len(decompressed)] = decompressed
        self._size += len(decompressed)
        return len(decompressed)

    def _next_stream(self) -> bytes:
        """Return the start of the next stream, behind zeros; empty at the end of the file."""
        data = self._stream.unused_data or self._compressed.read(_BLOCK)
        while data and not data.strip(b"\0"):
            data = self._compressed.read(_BLOCK)
        return data.lstrip(b"\0")


def bzip2(file: IO[bytes]) -> IO[bytes]:
    """Open a bzip2 file."""
    return io.BufferedReader(ConcatenatedStreams(file, bz2.BZ2Decompressor), _BUFFER)


def _xz(file: IO[bytes]) -> IO[bytes]:
    decompressor = partial(lzma.LZMADecompressor, memlimit=_MAX_MEMORY)
    return io.BufferedReader(ConcatenatedStreams(file, decompressor), _BUFFER)


def _zstandard(file: IO[bytes]) -> IO[bytes]:
    return io.BufferedReader(pa.CompressedInputStream(file, "zstd"), _BUFFER)


_DECOMPRESSORS: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"BZh": bzip2,
    b"\x1f\x8b": lambda file: gzip.GzipFile(fileobj=file),
    b"\xfd7zXZ": _xz,
    b"\x28\xb5\x2f\xfd": _zstandard,
}


def find_decompressor(start: bytes) -> Callable[[IO[bytes]], Any] | None:
    """Return the function that opens a compressed file, by the first bytes of the file.

    Returns:
        The function; None for a file that is not compressed by bzip2, gzip, xz or zstandard.
    """
    makers = (make for magic, make in _DECOMPRESSORS.items() if start.startswith(magic))
    return next(makers, None)
