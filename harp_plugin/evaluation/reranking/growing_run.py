"""A run that is written query by query, and goes on where a kill has left it."""

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
from ...files.made_from import MadeFrom, OverwriteRules
from ...files.with_record import FileWithRecord

__all__ = ["GrowingRun", "Sink", "StandardOutput"]

logger = logging.getLogger(__name__)


class Sink(Protocol):
    """Where the lines of reranked queries go."""

    def remaining(self, queries: Iterable[QueryResults]) -> Iterator[QueryResults]:
        """The queries that are not written yet."""

    def write(self, lines: str) -> None:
        """Write all lines of some queries; they outlive a kill of this process."""

    def finish(self) -> None:
        """Give the run its name: no query is left."""


class StandardOutput:
    """Lines go to standard output; nothing is kept for a later start."""

    def remaining(self, queries: Iterable[QueryResults]) -> Iterator[QueryResults]:
        """All of them."""
        return iter(queries)

    def write(self, lines: str) -> None:
        """Write and flush."""
        sys.stdout.write(lines)
        sys.stdout.flush()

    def finish(self) -> None:
        """Nothing is left to do."""


class GrowingRun:
    """Lines go to ``OUTPUT.part``, whole queries at a time; at the end it becomes ``OUTPUT``.

    What both are made of, and the hash of what they hold, lies beside them in ``.json``. A later
    start from the same goes on after the last whole query; one from something else is refused,
    unless the rules allow it. To be used by one process at a time.

    Args:
        output: the run; compressed if it ends in ``.gz``.
        settings: everything that its lines depend on; JSON types.
        versions: of the packages that make them.
        rules: what may be replaced.
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
        self._known = 0

    @property
    def files(self) -> list[Path]:
        """Every file that may be written."""
        return [file for one in (self._run, self._part) for file in (one.path, one.record_path)]

    def is_finished(self) -> bool:
        """Whether the run is there, made from the same.

        Raises:
            HarpError: something is there that may not be replaced.
        """
        if not self._run.is_finished():
            return False
        if self._part.read_record() is not None:  # a kill came between the run and its end
            self._part.path.unlink(missing_ok=True)
            self._part.record_path.unlink()
        return True

    @contextmanager
    def open(self) -> Iterator[GrowingRun]:
        """Make the part ready; what it holds of the same work is kept.

        Raises:
            HarpError: it is of other work, or not ours, or cannot be written.
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
        """The queries that are not written yet; an unfinished one at the end is cut off."""
        queries = iter(queries)
        self._hash = hashlib.sha256()
        whole = 0
        self._opened.seek(0)
        for query in queries:
            lines = list(islice(self._opened, len(query.documents))) if whole < self._known else []
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
        """Append, and note the new hash when the lines are on the disk."""
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
        """Whether the part is of the same work.

        Raises:
            HarpError: it may not be replaced.
        """
        note = self._part.read_record()
        if note is None or not note.get("bytes") or not self._part.path.exists():
            return False
        self._known = note["bytes"] if isinstance(note.get("bytes"), int) else 0
        with self._part.path.open("rb") as file:
            digest = _digest(file, self._known)
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
                f"cannot write run {self._run.path}: {error}: mend that and run again"
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
