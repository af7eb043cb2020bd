"""A first-stage run, of which each query's best documents are kept by number."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby, islice

import numpy as np
from numpy.typing import NDArray

from ..errors import HarpError
from .trec_run import Retrieved

_AT_ONCE = 10_000


class TopDocuments:
    """The best documents of each query, ordered by score; equal scores keep the run's order.

    Args:
        lines: a run's lines; fastest where a query's stand together.
        depth: how many documents of a query are kept, None for all.
        source: what the run is called in errors.

    Raises:
        HarpError: there are no lines, or a document stands twice under a query.
    """

    def __init__(self, lines: Iterable[Retrieved], depth: int | None, source: str) -> None:
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

    def scores(self, query: str) -> dict[str, float]:
        """The score of each document of a query; empty where the run lacks the query."""
        if query not in self:
            return {}
        return dict(zip(self[query], self._best[query][1].tolist(), strict=True))

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
