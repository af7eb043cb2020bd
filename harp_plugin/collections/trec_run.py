"""The lines of a TREC run, read and written: query, ``Q0``, document, rank, score, tag."""

from __future__ import annotations

import gzip
import math
import re
import stat
import zlib
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple, cast

from ..errors import HarpError

__all__ = [
    "LONGEST_LINE",
    "Result",
    "ScoredDocument",
    "count_lines",
    "is_stream",
    "run_lines",
    "run_text",
]

LONGEST_LINE = 65536
"""Bytes; a line of a run has hundreds at most."""
_MOST_EMPTY_LINES = 1000
"""In a row; more are no run, but a damaged or a hostile file."""
_COUNTED_BYTES = 1 << 30
_STREAMS = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
_SCORE = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_UNREADABLE = (OSError, EOFError, ValueError, zlib.error)


class ScoredDocument(NamedTuple):
    """What is read from a line of a run: the ids of a query and of a document, and a score."""

    query: str
    document: str
    score: float


class Result(NamedTuple):
    """What is written to a line of a run; ranks are from 0."""

    query: str
    document: str
    rank: int
    score: float


def run_lines(
    path: str | Path, queries: Container[str] | None = None, collection: str = ""
) -> Iterator[ScoredDocument]:
    """Stream the lines of a run, plain or ``.gz``; empty ones are passed over.

    Args:
        path: a file, ``/dev/stdin``, or what a shell's process substitution names.
        queries: the queries that may stand in it, None for any.
        collection: whose queries those are, in an error.

    Raises:
        HarpError: the file cannot be read, a line is malformed, or its query is not among those.
    """
    empty = 0
    for number, line in enumerate(_lines(path), start=1):
        where = f"run {path}, line {number}"
        text = _text(line, where)
        empty = 0 if text else empty + 1
        if empty > _MOST_EMPTY_LINES:
            raise HarpError(f"{where}: {empty} empty lines in a row: this is no run")
        if text:
            scored = _scored_document(text, where)
            if queries is not None and scored.query not in queries:
                raise HarpError(
                    f"{where}: query {scored.query!r:.80} is not in {collection}: name a run of "
                    "its queries"
                )
            yield scored


def run_text(results: Iterable[Result], tag: str) -> str:
    """Write the lines of a run; scores are written so that they read back as they were.

    Args:
        results: in the order of the lines; scores are Python's floats.
        tag: the last column.
    """
    return "".join(
        f"{query} Q0 {document} {rank} {score!r} {tag}\n"
        for query, document, rank, score in results
    )


def is_stream(path: str | Path) -> bool:
    """Whether this can be read only once: standard input, or what another process writes."""
    return str(path).startswith(_STREAMS)


def count_lines(path: str | Path) -> int | None:
    """How many lines a run has; None for what can be read only once, and for very large runs.

    Raises:
        HarpError: it cannot be read.
    """
    if is_stream(path):
        return None
    count = size = 0
    with _opened(path) as file:
        while part := file.read(1 << 20):
            count += part.count(b"\n")
            size += len(part)
            if size > _COUNTED_BYTES:
                return None
    return count


def _lines(path: str | Path) -> Iterator[bytes]:
    with _opened(path) as file:
        number = 0
        while line := file.readline(LONGEST_LINE + 1):
            number += 1
            if len(line) > LONGEST_LINE:
                raise HarpError(
                    f"run {path}, line {number}: over {LONGEST_LINE} bytes long: this is no run"
                )
            yield line


@contextmanager
def _opened(path: str | Path) -> Iterator[IO[bytes]]:
    """A run's bytes, unpacked.

    Raises:
        HarpError: it is neither a file nor a stream, or reading fails within the block.
    """
    opened = gzip.open if str(path).endswith(".gz") else open
    try:
        if not is_stream(path) and not stat.S_ISREG(Path(path).stat().st_mode):
            raise HarpError(f"run {path} is no file: name one, or - for standard input")
        with opened(path, "rb") as file:
            yield cast(IO[bytes], file)
    except _UNREADABLE as error:
        raise HarpError(f"cannot read run {path}: {error}: name a TREC run") from error


def _text(line: bytes, where: str) -> str:
    """A line without the white space around it."""
    if b"\0" in line:
        raise HarpError(f"{where}: it holds a NUL byte: a run is text in UTF-8")
    try:
        return line.decode("utf-8").removeprefix("\ufeff").strip()
    except UnicodeDecodeError as error:
        raise HarpError(f"cannot read {where}: {error.reason}: save the run as UTF-8") from None


def _scored_document(line: str, where: str) -> ScoredDocument:
    columns = line.split()
    if len(columns) != 6:
        raise HarpError(f"{where}: {len(columns)} columns; a TREC run has 6")
    score = float(columns[4]) if _SCORE.fullmatch(columns[4]) else math.nan
    if not math.isfinite(score):
        raise HarpError(f"{where}: score {columns[4]!r:.80} is no number")
    return ScoredDocument(columns[0], columns[2], score)
