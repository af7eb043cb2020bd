"""TREC runs: the lines of one (query, ``Q0``, document, rank, score, tag), and their queries."""

from __future__ import annotations

import gzip
import math
import re
import stat
import zlib
from array import array
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import IO, NamedTuple, cast

import numpy as np

from ..errors import HarpError

__all__ = [
    "LONGEST_LINE",
    "QueryResults",
    "Run",
    "ScoredDocument",
    "is_stream",
    "results_by_query",
    "run_lines",
]

LONGEST_LINE = 65536
"""Bytes; a line of a run has hundreds at most."""
_STREAMS = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
_SCORE = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_UNREADABLE = (OSError, EOFError, ValueError, zlib.error)
_UNSORTED = 200
_GZIP = b"\x1f\x8b"


class ScoredDocument(NamedTuple):
    """What is read from a line of a run: the ids of a query and of a document, and a score."""

    query: str
    document: str
    score: float


def run_lines(
    path: str | Path, queries: Container[str] | None = None, collection: str = ""
) -> Iterator[ScoredDocument]:
    """Stream the lines of a run, plain or packed by gzip; empty ones are passed over.

    Args:
        path: a file, ``/dev/stdin``, or what a shell's process substitution names.
        queries: the queries that the run may have, None for any.
        collection: whose queries those are, in an error.

    Raises:
        HarpError: the file cannot be read, a line is malformed, or its query is not among those.
    """
    for number, line in enumerate(_lines(path), start=1):
        where = f"run {path}, line {number}"
        if len(line) > LONGEST_LINE:
            raise HarpError(f"{where}: over {LONGEST_LINE} bytes long: this is not a run")
        if b"\0" in line:
            raise HarpError(f"{where}: it holds a NUL byte: a run is text in UTF-8")
        try:
            columns = line.decode("utf-8").removeprefix("\ufeff").split()
        except UnicodeDecodeError as error:
            raise HarpError(f"cannot read {where}: {error.reason}: save the run as UTF-8") from None
        if not columns:
            continue
        if len(columns) != 6:
            raise HarpError(f"{where}: {len(columns)} columns; a TREC run has 6")
        score = float(columns[4]) if _SCORE.fullmatch(columns[4]) else math.nan
        if not math.isfinite(score):
            raise HarpError(f"{where}: score {columns[4]!r:.80} is not a number")
        scored = ScoredDocument(columns[0], columns[2], score)
        if queries is not None and scored.query not in queries:
            raise HarpError(
                f"{where}: query {scored.query!r:.80} is not in {collection}: name a run of its "
                "queries"
            )
        yield scored


def is_stream(path: str | Path) -> bool:
    """Return whether this is read only once: standard input, or another process's output."""
    return str(path).startswith(_STREAMS)


class Run:
    """A run in memory: the documents of each query, ordered by score as evaluation tools do.

    Equal scores keep the order of the lines. The run takes 12 bytes for each document that is kept
    for a query, and about 100 bytes for each distinct document.

    Args:
        lines: of the run, in any order.
        source: what the run is called in errors.
        depth: how many documents of a query are kept; None for all.

    Raises:
        HarpError: there are no lines, or a document is kept twice for a query.
    """

    def __init__(
        self, lines: Iterable[ScoredDocument], source: str, depth: int | None = None
    ) -> None:
        self._documents: list[str] = []
        self._results: dict[str, tuple[array[int], array[float]]] = {}
        self._source = source
        self._depth = depth
        most = math.inf if depth is None else max(_UNSORTED, 2 * depth)
        numbers: dict[str, int] = {}
        for query, document, score in lines:
            if (results := self._results.get(query)) is None:
                results = self._results[query] = array("i"), array("d")
            if (number := numbers.get(document)) is None:
                number = numbers[document] = len(self._documents)
                self._documents.append(document)
            results[0].append(number)
            results[1].append(score)
            if len(results[0]) >= most:
                self._keep_best(query)
        for query in self._results:
            self._keep_best(query)
        if not self._results:
            raise HarpError(_empty(source))

    def __contains__(self, query: str) -> bool:
        return query in self._results

    def __iter__(self) -> Iterator[str]:
        """The queries, in the order of their first lines."""
        return iter(self._results)

    def __getitem__(self, query: str) -> list[str]:
        return [self._documents[number] for number in self._results[query][0]]

    def scores(self, query: str) -> dict[str, float]:
        """Return the score of each document of a query; empty where the run lacks the query."""
        if query not in self:
            return {}
        return dict(zip(self[query], self._results[query][1], strict=True))

    def _keep_best(self, query: str) -> None:
        """Sort the documents of a query, best first, and keep as many as are asked for."""
        numbers, scores = map(np.array, self._results[query])
        best = np.argsort(-scores, kind="stable")[: self._depth]
        distinct, counts = np.unique(numbers[best], return_counts=True)
        if len(distinct) < len(best):
            document = self._documents[distinct[counts > 1][0]]
            raise HarpError(
                f"{self._source} lists document {document:.80} twice for query {query:.80}: keep "
                "only the first"
            )
        numbers, scores = numbers[best], scores[best]
        self._results[query] = array("i", numbers.tobytes()), array("d", scores.tobytes())


class QueryResults(NamedTuple):
    """The results of one query.

    Attributes:
        query: its id.
        documents: best first, as many as are asked for.
        lines: how many the run has.
    """

    query: str
    documents: list[str]
    lines: int


def results_by_query(
    lines: Iterable[ScoredDocument], source: str, depth: int | None = None
) -> Iterator[QueryResults]:
    """Stream a run whose lines of a query stand together; one query is in memory at once.

    Args:
        lines: of the run.
        source: what the run is called in errors.
        depth: how many documents of a query to give; None for all.

    Raises:
        HarpError: the lines of a query stand in two places, a document is listed twice for a query,
            or there are no lines.
    """
    seen: set[str] = set()
    for query, block in groupby(lines, attrgetter("query")):
        if query in seen:
            raise HarpError(
                f"{source} has lines of query {query:.80} in two places: sort it by query"
            )
        seen.add(query)
        documents = Run(block, source)[query]
        yield QueryResults(query, documents[:depth], len(documents))
    if not seen:
        raise HarpError(_empty(source))


def _empty(source: str) -> str:
    return f"{source} is empty: name a run with results"


def _lines(path: str | Path) -> Iterator[bytes]:
    with _opened(path) as file:
        while line := file.readline(LONGEST_LINE + 1):
            yield line


@contextmanager
def _opened(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a run, unpacked.

    Raises:
        HarpError: it is neither a file nor a stream, or reading fails within the block.
    """
    try:
        if not is_stream(path) and not stat.S_ISREG(Path(path).stat().st_mode):
            raise HarpError(f"run {path} is not a file: name one, or - for standard input")
        with Path(path).open("rb") as file:
            is_packed = file.peek(2).startswith(_GZIP)
            yield cast(IO[bytes], gzip.GzipFile(fileobj=file)) if is_packed else file
    except _UNREADABLE as error:
        reason = getattr(error, "strerror", None) or error
        raise HarpError(f"cannot read run {path}: {reason}: name a TREC run") from error
