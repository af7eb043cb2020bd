"""A first-stage run, of which each query's best documents are kept by number."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Container, Iterable, Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import HarpError

_AT_ONCE = 10_000


class Retrieved(NamedTuple):
    """One line of a run."""

    query: str
    document: str
    score: float


class TopDocuments:
    """The best documents of each query, ordered by score; equal scores keep the run's order.

    Args:
        lines: a run's lines; fastest where a query's stand together.
        depth: how many documents of a query are kept.
        source: what the run is called in errors.

    Raises:
        HarpError: there are no lines, or a document stands twice under a query.
    """

    def __init__(self, lines: Iterable[Retrieved], depth: int, source: str) -> None:
        self._depth = depth
        self._documents: list[str] = []
        self._numbers: dict[str, int] = {}
        self._best: dict[str, tuple[NDArray[np.int32], NDArray[np.float64]]] = {}
        for query, block in groupby(lines, key=lambda line: line.query):
            while some := list(islice(block, _AT_ONCE)):
                self._add(query, some, source)
        self._numbers.clear()
        if not self._best:
            raise HarpError(f"{source} is empty: name a run with results")

    def __contains__(self, query: str) -> bool:
        return query in self._best

    def __getitem__(self, query: str) -> list[str]:
        return [self._documents[number] for number in self._best[query][0]]

    def _add(self, query: str, lines: list[Retrieved], source: str) -> None:
        numbers = np.array([self._number(line.document) for line in lines], dtype=np.int32)
        scores = np.array([line.score for line in lines], dtype=np.float64)
        if query in self._best:
            known, known_scores = self._best[query]
            numbers, scores = np.append(known, numbers), np.append(known_scores, scores)
        best = np.argsort(-scores, kind="stable")[: self._depth]
        numbers, scores = numbers[best], scores[best]
        distinct, counts = np.unique(numbers, return_counts=True)
        if len(distinct) < len(numbers):
            twice = self._documents[distinct[counts > 1][0]]
            raise HarpError(f"{source} lists document {twice} twice for query {query}: keep one")
        self._best[query] = numbers, scores

    def _number(self, document: str) -> int:
        number = self._numbers.setdefault(document, len(self._documents))
        if number == len(self._documents):
            self._documents.append(document)
        return number


def read_run(path: str, known: Container[str], collection: str) -> Iterator[Retrieved]:
    """Stream the lines of a TREC run, plain or ``.gz``.

    Raises:
        HarpError: the file cannot be read, a line is malformed, or its query is not known.
    """
    opened = gzip.open if path.endswith(".gz") else open
    try:
        with opened(Path(path), "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    retrieved = _retrieved(line, f"run {path}, line {number}")
                    if retrieved.query not in known:
                        raise HarpError(
                            f"run {path}, line {number}: query {retrieved.query!r} is not in "
                            f"{collection}: name a run of its queries"
                        )
                    yield retrieved
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise HarpError(f"cannot read run {path}: {error}") from error


def _retrieved(line: str, where: str) -> Retrieved:
    columns = line.split()
    if len(columns) != 6:
        raise HarpError(f"{where}: {len(columns)} columns; a TREC run has 6")
    try:
        score = float(columns[4])
    except ValueError:
        score = float("nan")
    if score != score:
        raise HarpError(f"{where}: score {columns[4]!r} is no number")
    return Retrieved(columns[0], columns[2], score)
