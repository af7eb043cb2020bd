"""Reads the file in a 7z archive as a stream."""

from __future__ import annotations

import io
import os
import threading
from typing import IO, Any

from ...errors import HarpError

__all__ = ["SevenZipFile"]


class SevenZipFile(io.RawIOBase):
    """Decompresses the file in a 7z archive.

    A thread runs py7zr; it waits while nobody reads.

    Raises:
        HarpError: py7zr is not installed, or the archive does not hold exactly one file.
    """

    def __init__(self, file: IO[bytes]) -> None:
        try:
            import py7zr
        except ModuleNotFoundError as error:
            raise HarpError("7z archives need py7zr: run `pip install py7zr`") from error
        try:
            self._archive = py7zr.SevenZipFile(file)
            names = self._archive.getnames()
        except Exception as error:  # a damaged header may raise any error
            raise OSError(f"damaged 7z archive: {error!r}") from error
        if len(names) != 1:
            raise HarpError(f"a 7z archive of {len(names)} files: extract it and name the folder")
        receiving, self._sending = os.pipe()
        self._receiver = os.fdopen(receiving, "rb", buffering=0)
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._extract, daemon=True)
        self._thread.start()

    def _extract(self) -> None:
        try:
            with os.fdopen(self._sending, "wb") as sender:
                self._archive.extractall(factory=_factory(sender))
        except BrokenPipeError:
            pass
        except Exception as error:  # `readinto` raises it, in the thread that reads
            self._failure = error

    def readable(self) -> bool:
        """Return true."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read decompressed bytes into a buffer and return their number.

        Raises:
            OSError: the archive is damaged.
        """
        size = self._receiver.readinto(buffer) or 0
        if not size:
            self._thread.join()
            if self._failure is not None:
                raise OSError(f"damaged 7z archive: {self._failure!r}") from self._failure
        return size

    def close(self) -> None:
        """Close the archive and end the thread."""
        if not self.closed:
            self._receiver.close()
            self._thread.join()
        super().close()


def _factory(sender: IO[bytes]) -> Any:
    from py7zr.io import Py7zIO, WriterFactory

    class Writer(Py7zIO):
        def write(self, data: bytes | bytearray) -> int:
            return sender.write(data)

        def read(self, size: int | None = None) -> bytes:
            return b""

        def seek(self, offset: int, whence: int = 0) -> int:
            return offset

        def flush(self) -> None:
            sender.flush()

        def size(self) -> int:
            return 0

    class Factory(WriterFactory):
        def create(self, filename: str) -> Py7zIO:
            return Writer()

    return Factory()
