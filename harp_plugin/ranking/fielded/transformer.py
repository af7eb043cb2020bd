"""BM25 over fields as a PyTerrier transformer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt

from ...limits import COUNT, check_limits
from ..compared_transformer import ComparedTransformer
from ..ranks import best
from ..results import query_texts, result_frame, with_cutoff
from ..terms import query_terms
from .index import FieldedIndex
from .settings import FieldSettings, term_weight

__all__ = ["FieldedBm25"]


class FieldedBm25(ComparedTransformer):
    """Retrieve by BM25 over fields (BM25F): ``FieldedBm25(index, {"title": 3, "text": 1})``.

    Each field has a weight and a length normalization of its own, and a term's counts are summed
    before they are saturated. With one field, the scores are those of PISA's BM25. Equal scores are
    ordered by docno.

    Args:
        index: what is searched; it is built when it is first read.
        weights: of the fields, 0 for one that is not named; by default 1 each. Weights that are all
            larger by a factor do the same as a k1 that is smaller by it.
        k1: a larger number gives repeated words more weight.
        b: a larger number gives long fields less weight; one for all fields, or by field.
        num_results: results per query.
        verbose: show a progress bar.

    Raises:
        HarpError: a field is unknown, or a number makes no sense.
    """

    schematic = {"label": "FieldedBm25", "help_url": None}  # noqa: RUF012

    def __init__(
        self,
        index: FieldedIndex,
        weights: Mapping[str, float] | None = None,
        *,
        k1: float = 0.9,
        b: float | Mapping[str, float] = 0.4,
        num_results: int = 1000,
        verbose: bool = False,
    ) -> None:
        self.index = index
        self.weights = weights
        self.k1 = k1
        self.b = b
        self.num_results = num_results
        self.verbose = verbose
        _ = self.settings  # so that wrong arguments are refused here

    @property
    def settings(self) -> FieldSettings:
        """The parameters, by the present attributes."""
        check_limits({"num_results": self.num_results}, {"num_results": COUNT})
        return FieldSettings.of(self.index.fields, self.weights, self.k1, self.b)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Retrieve for each query.

        Args:
            inp: rows of ``qid`` and ``query``.

        Returns:
            The rows, repeated for each result, with new ``docno``, ``score`` (float64) and ``rank``
            (from 0).

        Raises:
            HarpError: a query is no string; the message names its qid.
        """
        pt.validate.query_frame(inp, extra_columns=["query"], context=self)
        settings, queries = self.settings, query_texts(inp)
        bar = pt.tqdm(queries, desc="FieldedBm25", unit="query", disable=not self.verbose)
        return result_frame(inp, [self._search(query, settings) for query in bar])

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer | None:
        """Make one transformer of ``self % k``."""
        return with_cutoff(self, k)

    def _search(self, query: str, settings: FieldSettings) -> tuple[np.ndarray, np.ndarray]:
        """Give the docnos and the scores of the results, best first."""
        postings = self.index.postings
        scores = np.zeros(len(postings.docnos))
        for term in query_terms(query):
            documents, counts = postings.of_term(term, settings.active)
            lengths = postings.relative_lengths[:, documents]
            weight = term_weight(len(scores), len(documents))
            scores[documents] += settings.scores(counts, lengths, weight)
        found = np.flatnonzero(scores)
        found = found[best(scores[found], found, self.num_results)]
        return postings.docnos[found], scores[found]

    def _comparison_key(self) -> tuple[Any, ...]:
        return self.index, self.settings, self.num_results

    def __repr__(self) -> str:
        arguments = self.settings.arguments | {"num_results": self.num_results}
        named = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
        return f"FieldedBm25({self.index!r}, {named})"
