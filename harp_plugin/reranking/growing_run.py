"""A run that is written query by query, and goes on where a kill has left it."""

from __future__ import annotations

import fcntl
import gzip
import json
import logging
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from ..errors import HarpError
from .queries import Results

logger = logging.getLogger(__name__)


class Sink(Protocol):
    """Where the lines of reranked queries go."""

    def remaining(self, queries: Iterable[Results]) -> Iterator[Results]:
        """The queries that are not written yet."""

    def write(self, lines: str) -> None:
        """Write all lines of some queries; they outlive a kill of this process."""

    def finish(self) -> None:
        """Give the run its name: no query is left."""


class StandardOutput:
    """Lines go to standard output; nothing is kept for a later start."""

    def remaining(self, queries: Iterable[Results]) -> Iterator[Results]:
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

    What both are made of lies beside them in ``.json``. A later start with equal settings goes on
    after the last whole query; one with others starts anew, and says so.

    Args:
        output: the run; compressed if it ends in ``.gz``.
        settings: everything that its lines depend on; JSON types.

    Raises:
        HarpError: it cannot be written, or another process is writing it.
    """

    def __init__(self, output: Path, settings: dict[str, Any]) -> None:
        self.output = output
        self._settings = json.loads(json.dumps(settings))
        self._part = output.with_name(f"{output.name}.part")
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._part.open("ab+")
            self._lock()
            self._take_up()
        except OSError as error:
            raise HarpError(f"cannot write run {output}: {error}") from error

    @staticmethod
    def is_finished(output: Path, settings: dict[str, Any]) -> bool:
        """Whether the run is there, made with equal settings."""
        return output.is_file() and _read_note(output) == json.loads(json.dumps(settings))

    def remaining(self, queries: Iterable[Results]) -> Iterator[Results]:
        """The queries that are not written yet; an unfinished one at the end is cut off."""
        queries = iter(queries)
        whole = 0
        self._file.seek(0)
        for query in queries:
            lines = list(islice(self._file, len(query.docnos)))
            if not _is_whole(lines, query):
                queries = chain([query], queries)
                break
            whole += sum(map(len, lines))
        self._file.truncate(whole)
        if whole:
            logger.info("%s: going on after %d bytes", self.output, whole)
        return queries

    def write(self, lines: str) -> None:
        """Append and flush."""
        try:
            self._file.write(lines.encode())
            self._file.flush()
        except OSError as error:
            raise HarpError(f"cannot write {self._part}: {error}; then run again") from error

    def finish(self) -> None:
        """Copy the part to its final name and remove it."""
        temporary = self.output.with_name(f"{self.output.name}.{os.getpid()}.tmp")
        self._file.seek(0)
        with temporary.open("wb") as file:
            _copy(self._file, file, compressed=self.output.suffix == ".gz")
        _note(self.output).unlink(missing_ok=True)
        temporary.replace(self.output)
        _write_note(self.output, self._settings)
        self._part.unlink()
        _note(self._part).unlink()
        self._file.close()

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HarpError(f"another process is writing {self._part}: wait for it") from None

    def _take_up(self) -> None:
        known = _read_note(self._part)
        if known == self._settings:
            return
        if known is not None:
            others = [key for key in self._settings if known.get(key) != self._settings[key]]
            logger.warning(
                "%s was made with another %s: starting anew", self._part, ", ".join(others)
            )
        self._file.truncate(0)
        _write_note(self._part, self._settings)


def _is_whole(lines: list[bytes], query: Results) -> bool:
    if not lines or not lines[-1].endswith(b"\n"):
        return False
    written = [line.decode(errors="replace").split()[:3:2] for line in lines]
    return sorted(written) == sorted([query.qid, docno] for docno in query.docnos)


def _copy(source: BinaryIO, target: BinaryIO, *, compressed: bool) -> None:
    if compressed:
        with gzip.GzipFile("", "wb", fileobj=target, mtime=0) as packed:
            shutil.copyfileobj(source, packed)
    else:
        shutil.copyfileobj(source, target)


def _note(run: Path) -> Path:
    return run.with_name(f"{run.name}.json")


def _read_note(run: Path) -> dict[str, Any] | None:
    try:
        return json.loads(_note(run).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _write_note(run: Path, settings: dict[str, Any]) -> None:
    temporary = run.with_name(f"{run.name}.json.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")
    temporary.replace(_note(run))
