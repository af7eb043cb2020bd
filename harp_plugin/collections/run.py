"""Runs grouped by query, each query's documents best first."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from ..errors import HarpError
from .trec_run import ScoredDocument

__all__ = ["QueryResults", "Run", "results_by_query"]

_UNSORTED = 200
_UNCHECKED = 10_000


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
        self._best: dict[str, _BestDocuments] = {}
        numbers: dict[str, int] = {}
        for query, document, score in lines:
            if (best := self._best.get(query)) is None:
                best = self._best[query] = _BestDocuments(depth)
            if (number := numbers.get(document)) is None:
                number = numbers[document] = len(self._documents)
                self._documents.append(document)
            if best.add(number, score):
                self._sort(query, source)
        for query in self._best:
            self._sort(query, source)
        if not self._best:
            raise HarpError(_empty(source))

    def __contains__(self, query: str) -> bool:
        return query in self._best

    def __iter__(self) -> Iterator[str]:
        """The queries, in the order of their first lines."""
        return iter(self._best)

    def __getitem__(self, query: str) -> list[str]:
        return [self._documents[number] for number in self._best[query].numbers]

    def scores(self, query: str) -> dict[str, float]:
        """The score of each document of a query; empty where the run lacks the query."""
        if query not in self:
            return {}
        return dict(zip(self[query], self._best[query].scores, strict=True))

    def _sort(self, query: str, source: str) -> None:
        repeated = self._best[query].sort()
        if repeated is not None:
            document = self._documents[repeated]
            raise HarpError(
                f"{source} lists document {document:.80} twice for query {query:.80}: keep one"
            )


class _BestDocuments:
    """The best documents of one query, by number; the last ones added are not sorted yet."""

    __slots__ = ("_depth", "_limit", "numbers", "scores")

    def __init__(self, depth: int | None) -> None:
        self._depth = depth
        self._limit = _UNCHECKED if depth is None else max(_UNSORTED, 2 * depth)
        self.numbers = array("i")
        self.scores = array("d")

    def add(self, number: int, score: float) -> bool:
        """Add a document; tell whether there are so many that it is time to sort them."""
        self.numbers.append(number)
        self.scores.append(score)
        return len(self.numbers) >= self._limit

    def sort(self) -> int | None:
        """Keep the best documents, best first; give the number of one that is there twice."""
        numbers, scores = np.array(self.numbers), np.array(self.scores)
        best = np.argsort(-scores, kind="stable")[: self._depth]
        self.numbers = array("i", numbers[best].tobytes())
        self.scores = array("d", scores[best].tobytes())
        if self._depth is None:
            self._limit = max(_UNCHECKED, 2 * len(best))
        distinct, counts = np.unique(numbers[best], return_counts=True)
        return None if len(distinct) == len(best) else int(distinct[counts > 1][0])


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
        HarpError: the lines of a query stand in two places, a document stands twice for a query,
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
