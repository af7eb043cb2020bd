"""Compressed streams one after the other, within bounds of memory."""

from __future__ import annotations

import bz2
import io
import lzma
from collections.abc import Callable
from functools import partial
from typing import IO, Any

_BLOCK = 1 << 13
_MOST_MEMORY = 1 << 29


class ConcatenatedStreams(io.RawIOBase):
    """Decompresses streams to the end of a file.

    The standard library's files take damage between two streams for the end; here, it is an error.

    Args:
        file: the compressed file, at its start.
        decompressor: makes one for each stream.
    """

    def __init__(self, file: IO[bytes], decompressor: Callable[[], Any]) -> None:
        self._compressed = file
        self._decompressor = decompressor
        self._stream = decompressor()
        self._size = 0

    def readable(self) -> bool:
        """Always true."""
        return True

    def tell(self) -> int:
        """How many decompressed bytes have been read."""
        return self._size

    def readinto(self, buffer: Any) -> int:
        """Read decompressed bytes.

        Raises:
            OSError, lzma.LZMAError: a stream is damaged, or needs more than 512 MiB of memory.
            EOFError: the last one is truncated.
        """
        found = b""
        while not found:
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
            found = self._stream.decompress(data, len(buffer))
        buffer[: len(found)] = found
        self._size += len(found)
        return len(found)

    def _next_stream(self) -> bytes:
        """The start of the next stream, after zeros; empty at the end of the file."""
        data = self._stream.unused_data or self._compressed.read(_BLOCK)
        while data and not data.strip(b"\0"):
            data = self._compressed.read(_BLOCK)
        return data.lstrip(b"\0")


def bzip2(file: IO[bytes]) -> IO[bytes]:
    """Open a file of bzip2."""
    return io.BufferedReader(ConcatenatedStreams(file, bz2.BZ2Decompressor), 1 << 20)


def xz(file: IO[bytes]) -> IO[bytes]:
    """Open a file of xz."""
    decompressor = partial(lzma.LZMADecompressor, memlimit=_MOST_MEMORY)
    return io.BufferedReader(ConcatenatedStreams(file, decompressor), 1 << 20)
