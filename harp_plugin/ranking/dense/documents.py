"""The vectors of documents, and a search that compares a query with all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..frames import best

if TYPE_CHECKING:
    from pyterrier_dr import FlexIndex

__all__ = ["DECIMALS", "DocumentVectors"]

DECIMALS = 6
"""To which scores are rounded, so that the order does not depend on how a product is blocked."""
_QUERIES_AT_ONCE = 1024
_PRODUCTS_AT_ONCE = 2**24


@dataclass(frozen=True, eq=False)
class DocumentVectors:
    """The vectors of documents, which may have one for each passage: the best of them counts.

    Attributes:
        vectors: (passages, dimensions) float32, those of a document one after another.
        starts: (documents,) the number of each document's first vector.
        docnos: (documents,) their names.
    """

    vectors: np.ndarray
    starts: np.ndarray
    docnos: pd.Index

    @classmethod
    def read(cls, flex: FlexIndex, most_passages: int) -> DocumentVectors:
        """Read an index of documents; with more than one passage of each, of their passages."""
        names, vectors, _ = flex.payload()
        of_passages = most_passages > 1
        docnos = pd.Series(
            [name.rpartition("%p")[0] if of_passages else name for name in names], dtype=object
        )
        starts = np.flatnonzero(docnos != docnos.shift())
        return cls(vectors, starts, pd.Index(docnos[starts], dtype=object))

    def numbers(self, docnos: Iterable[str]) -> np.ndarray:
        """(docnos,) the numbers of documents, -1 for those that are not there."""
        return self.docnos.get_indexer(pd.Index([*docnos], dtype=object))

    def search(self, queries: np.ndarray, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Compare queries with all documents.

        Args:
            queries: their vectors, (queries, dimensions).
            count: how many documents are found for each.

        Returns:
            For each query the docnos (objects) and the scores (float64) of the best documents, best
            first, and equal scores by docno.
        """
        results = []
        for first in range(0, len(queries), _QUERIES_AT_ONCE):
            part = queries[first : first + _QUERIES_AT_ONCE]
            found = [(np.zeros(0, np.int64), np.zeros(0))] * len(part)
            for block in self._blocks(len(part)):
                scores = self._scores_of_block(part, *block)
                found = [
                    self._best(*of_query, block[0], row, count)
                    for of_query, row in zip(found, scores, strict=True)
                ]
            results += [(self.docnos.to_numpy()[numbers], scores) for numbers, scores in found]
        return results

    def scores(
        self, queries: np.ndarray, query_of: np.ndarray, document_of: np.ndarray
    ) -> np.ndarray:
        """Score results.

        Args:
            queries: (queries, dimensions) vectors.
            query_of: (results,) the number of each result's query.
            document_of: (results,) the number of its document.

        Returns:
            (results,) float64.
        """
        starts, scores = self.starts[document_of], np.full(len(query_of), -np.inf)
        lengths = self._ends[document_of] - starts
        for passage in range(lengths.max(initial=0)):
            there = np.flatnonzero(lengths > passage)
            vectors = queries[query_of[there]], self.vectors[starts[there] + passage]
            products = np.einsum("ij,ij->i", *vectors).astype(np.float64).round(DECIMALS)
            scores[there] = np.maximum(scores[there], products)
        return scores

    @cached_property
    def _ends(self) -> np.ndarray:
        return np.append(self.starts[1:], len(self.vectors))

    @cached_property
    def _places(self) -> np.ndarray:
        """(documents,) the place of each document where they are sorted by docno."""
        return self.docnos.argsort().argsort()

    def _blocks(self, queries: int) -> Iterator[tuple[int, int]]:
        """Give the first document of each block of them, and the first one after it."""
        edges = range(0, len(self.vectors), max(_PRODUCTS_AT_ONCE // queries, 1))
        firsts = np.searchsorted(self.starts, edges)
        return pairwise(np.unique([*firsts, len(self.starts)]).tolist())

    def _scores_of_block(self, queries: np.ndarray, first: int, after: int) -> np.ndarray:
        """(queries, documents) float64 the scores of the documents of a block."""
        starts = self.starts[first:after]
        products = queries @ self.vectors[starts[0] : self._ends[after - 1]].T
        scores = np.maximum.reduceat(products, starts - starts[0], axis=1)
        return np.nan_to_num(scores.astype(np.float64).round(DECIMALS), nan=-np.inf)

    def _best(
        self, numbers: np.ndarray, scores: np.ndarray, first: int, of_block: np.ndarray, count: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Choose the best of the documents that a query has found before, and of a block.

        Args:
            numbers: (found,) the numbers of the documents that were found before.
            scores: (found,) their scores.
            first: the number of the first document of the block.
            of_block: (documents,) the scores of its documents.
            count: how many are chosen.

        Returns:
            The numbers and the scores of the chosen documents, best first.
        """
        numbers = np.append(numbers, np.arange(first, first + len(of_block)))
        scores = np.append(scores, of_block)
        chosen = best(scores, self._places[numbers], count)
        return numbers[chosen], scores[chosen]
