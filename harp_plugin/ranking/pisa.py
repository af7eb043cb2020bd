"""What PISA reads, and what it prints."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Protocol

from ..errors import HarpError

__all__ = ["READABLE", "DocumentFeed", "Documents", "muted", "plain"]

READABLE = re.compile("[A-Za-z0-9]")
"""What the words that PISA knows are made of."""


class Documents(Protocol):
    """The documents of a collection, to be indexed.

    Attributes:
        name: what messages call the collection.
        identity: what its documents depend on; JSON types.
        document_count: their number; None if it is not known.
    """

    name: str

    @property
    def identity(self) -> dict[str, Any]: ...

    @property
    def document_count(self) -> int | None: ...

    def documents(self) -> Iterator[tuple[str, str]]:
        """Give the docno and the text of every document."""


class DocumentFeed:
    """Documents for PISA's indexer, which reads them in a thread and drops that thread's errors.

    Raises:
        HarpError: there are no documents.
    """

    def __init__(self, collection: Documents) -> None:
        self._documents = collection.documents()
        self._first = next(self._documents, None)
        self._name = collection.name
        self._error: Exception | None = None
        self._count = 0
        self._has_words = False
        if self._first is None:
            raise HarpError(f"{self._name} has no documents: name another collection")

    def __iter__(self) -> Iterator[dict[str, str]]:
        try:
            yield self._record(*self._first)  # type: ignore[misc]
            for docno, text in self._documents:
                yield self._record(docno, text)
            if not self._has_words:
                yield {"docno": "0", "text": "0"}  # without any word PISA would end this process
        except Exception as error:
            self._error = error

    def check(self, indexed: int) -> None:
        """Raise what went wrong while PISA read, or HarpError if it indexed another number."""
        if self._error is not None:
            raise self._error
        if not self._has_words:
            raise HarpError(
                f"no document of {self._name} has a Latin letter or digit, and PISA reads no "
                "others: name another first stage"
            )
        if indexed != self._count:
            raise HarpError(
                f"PISA indexed {indexed} of {self._count} documents of {self._name}:"
                " check the space on disk and run again"
            )

    def _record(self, docno: str, text: str) -> dict[str, str]:
        if not docno or re.search(r"\s", docno):
            raise HarpError(f"docno {docno!r} of {self._name} is empty or holds white space")
        self._count += 1
        text = plain(text)
        self._has_words = self._has_words or READABLE.search(text) is not None
        return {"docno": docno, "text": text}


def plain(text: str) -> str:
    """Fold accents and blank out what PISA cannot read, such as NUL or half a surrogate pair."""
    if not text.isascii():
        text = re.sub(r"[\u0300-\u036f]", "", unicodedata.normalize("NFKD", text))
        text = re.sub(r"[^\x00-\x7f]", " ", text)
    return text.replace("\0", " ")


@contextlib.contextmanager
def muted(log: Path) -> Iterator[IO[str]]:
    """Send what PISA's C++ code prints to a file; give the screen to progress bars."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        with os.fdopen(os.dup(saved[1]), "w") as screen:
            yield screen
    finally:
        for stream, number in zip(saved, (1, 2), strict=True):
            os.dup2(stream, number)
            os.close(stream)
