"""A run that is written query by query; a later start goes on where a kill has stopped it."""

from __future__ import annotations

import gzip
import hashlib
import logging
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from ...collections.run import QueryResults
from ...errors import HarpError
from ...work.provenance import MadeFrom, OverwriteRules
from ...work.with_record import FileWithRecord

__all__ = ["GrowingRun", "Sink", "StandardOutput"]

logger = logging.getLogger(__name__)


class Sink(Protocol):
    """Writes the lines of reranked queries."""

    def remaining(self, queries: Iterable[QueryResults]) -> Iterator[QueryResults]:
        """Give the queries that are not written yet."""

    def write(self, lines: str) -> None:
        """Write all lines of a few queries; a kill of this process does not lose them."""

    def finish(self) -> None:
        """Give the run its name when no query is left."""


class StandardOutput:
    """Writes lines to standard output and keeps nothing for a later start."""

    def remaining(self, queries: Iterable[QueryResults]) -> Iterator[QueryResults]:
        """Give all queries."""
        return iter(queries)

    def write(self, lines: str) -> None:
        """Write lines and flush them."""
        sys.stdout.write(lines)
        sys.stdout.flush()

    def finish(self) -> None:
        """Do nothing."""


class GrowingRun:
    """Writes lines to ``OUTPUT.part``, whole queries at a time, and copies it to ``OUTPUT``.

    A ``.json`` file beside each of the two holds the settings that it is made from and a hash of
    its content. A later start with the same settings goes on after the last whole query. A start
    with other settings is refused, unless the rules allow it. Only one process may use it at a
    time.

    Args:
        output: the run; it is compressed if its name ends in ``.gz``.
        settings: everything that the lines depend on; JSON types.
        versions: of the packages that make the lines.
        rules: which files may be replaced.
    """

    def __init__(
        self,
        output: Path,
        settings: dict[str, Any],
        versions: Mapping[str, str],
        rules: OverwriteRules,
    ) -> None:
        part = output.with_name(f"{output.name}.part")
        made_from = MadeFrom(settings, versions)
        self._run = FileWithRecord(output, made_from, rules)
        self._part = FileWithRecord(part, made_from, rules)
        self._file: BinaryIO | None = None
        self._hash = hashlib.sha256()
        self._noted_bytes = 0

    @property
    def files(self) -> list[Path]:
        """Every file that may be written."""
        run, part = self._run, self._part
        return [run.path, run.record_path, part.path, part.record_path]

    def is_finished(self) -> bool:
        """Whether the whole run has been written from the same settings.

        Raises:
            HarpError: there is a file that may not be replaced.
        """
        if not self._run.is_finished():
            return False
        if self._part.read_record() is not None:  # a kill came between the run and its end
            self._part.path.unlink(missing_ok=True)
            self._part.record_path.unlink()
        return True

    @contextmanager
    def open(self) -> Iterator[GrowingRun]:
        """Open the part; lines that it holds from the same settings are kept.

        Raises:
            HarpError: the part is made from other settings, was not written by harp, or cannot be
                written.
        """
        with self._cannot_write():
            self._part.path.parent.mkdir(parents=True, exist_ok=True)
            if not self._goes_on():
                self._part.write_record(bytes=0, sha256=hashlib.sha256().hexdigest())
                self._part.path.unlink(missing_ok=True)
            self._file = self._part.path.open("ab+")
        try:
            yield self
        finally:
            self._opened.close()

    def remaining(self, queries: Iterable[QueryResults]) -> Iterator[QueryResults]:
        """Give the queries that are not written yet, and cut off an unfinished query at the end."""
        queries = iter(queries)
        self._hash = hashlib.sha256()
        whole = 0
        self._opened.seek(0)
        for query in queries:
            lines = (
                list(islice(self._opened, len(query.documents)))
                if whole < self._noted_bytes
                else []
            )
            if not _is_whole(lines, query):
                queries = chain([query], queries)
                break
            whole += sum(map(len, lines))
            self._hash.update(b"".join(lines))
        self._opened.truncate(whole)
        if whole:
            logger.info("%s: going on after %d bytes", self._run.path, whole)
        return queries

    def write(self, lines: str) -> None:
        """Append lines, and note the new hash when they are on the disk."""
        content = lines.encode()
        self._hash.update(content)
        with self._cannot_write():
            self._opened.write(content)
            self._opened.flush()
            os.fsync(self._opened.fileno())
            size = self._opened.tell()
            self._part.write_record(bytes=size, sha256=self._hash.hexdigest())

    def finish(self) -> None:
        """Copy the part to its final name and remove it."""
        with self._cannot_write():
            self._opened.seek(0)
            with self._run.writing() as temporary, temporary.open("wb") as file:
                _copy(self._opened, file, compressed=self._run.path.suffix == ".gz")
            self._part.path.unlink()
            self._part.record_path.unlink()

    def _goes_on(self) -> bool:
        """Whether the part is made from the same settings.

        Raises:
            HarpError: the part may not be replaced.
        """
        note = self._part.read_record()
        if note is None or not note.get("bytes") or not self._part.path.exists():
            return False
        self._noted_bytes = note["bytes"] if isinstance(note.get("bytes"), int) else 0
        with self._part.path.open("rb") as file:
            digest = _digest(file, self._noted_bytes)
        if not self._part.can_use(note, unchanged=digest == note.get("sha256")):
            return False
        made_from = MadeFrom(note["settings"], note["versions"])
        self._run.made_from = self._part.made_from = made_from
        return True

    @property
    def _opened(self) -> BinaryIO:
        assert self._file is not None
        return self._file

    @contextmanager
    def _cannot_write(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise HarpError(
                f"cannot write run {self._run.path}: {error}: remove the cause and run again"
            ) from error


def _is_whole(lines: list[bytes], query: QueryResults) -> bool:
    if not lines or not lines[-1].endswith(b"\n"):
        return False
    written = [line.decode(errors="replace").split()[:3:2] for line in lines]
    return sorted(written) == sorted([query.query, document] for document in query.documents)


def _digest(file: BinaryIO, size: int) -> str:
    """The SHA-256 of the first bytes of a file."""
    digest = hashlib.sha256()
    while size > 0 and (part := file.read(min(size, 1 << 20))):
        digest.update(part)
        size -= len(part)
    return digest.hexdigest()


def _copy(source: BinaryIO, target: BinaryIO, *, compressed: bool) -> None:
    if compressed:
        with gzip.GzipFile("", "wb", fileobj=target, mtime=0) as packed:
            shutil.copyfileobj(source, packed)
    else:
        shutil.copyfileobj(source, target)
