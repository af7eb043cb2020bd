"""BM25 over fields: its parameters, and the PyTerrier transformer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

import numpy as np
import pandas as pd
import pyterrier as pt

from ...errors import HarpError
from ...options import Count, Fraction, Interval, checked
from ..base import ComparedTransformer
from ..frames import best, check_queries, result_frame, with_cutoff
from ..terms import query_terms
from ..texts import column_texts
from .index import FieldedIndex

__all__ = ["FieldSettings", "FieldedBm25", "term_weight"]

_Number = Annotated[float, Interval(ge=0, le=1e6)]
_Numbers = dict[str, _Number]
_Fractions = dict[str, Fraction]


@dataclass(frozen=True)
class FieldSettings:
    """Parameters of BM25 over fields.

    Attributes:
        fields: names of all fields.
        weights: (fields,) of their counts; a field of weight 0 counts for nothing.
        b: (fields,) how much a long field lessens its counts.
        k1: a larger number gives repeated words more weight.
    """

    fields: tuple[str, ...]
    weights: tuple[float, ...]
    b: tuple[float, ...]
    k1: float

    @classmethod
    def from_arguments(
        cls,
        fields: Sequence[str],
        weights: Mapping[str, float] | None,
        k1: float,
        b: float | Mapping[str, float],
    ) -> FieldSettings:
        """Check parameters, and bring them into the order of the fields.

        Args:
            fields: names of all fields.
            weights: by field; 0 for one that is not named. None for 1 each.
            k1: see above.
            b: one number for all fields, or by field.

        Raises:
            HarpError: a field is unknown, a number is out of its range, or all weights are 0.
        """
        weights = dict.fromkeys(fields, 1.0) if weights is None else dict(weights)
        b = dict(b) if isinstance(b, Mapping) else dict.fromkeys(fields, b)
        for name, values, kind in (("weights", weights, _Numbers), ("b", b, _Fractions)):
            if unknown := [field for field in values if field not in fields]:
                raise HarpError(
                    f"{name} name the field {unknown[0]!r}, which the index lacks: it has "
                    f"{', '.join(fields)}"
                )
            checked(name, kind, values)
        checked("k1", _Number, k1)
        if not any(weights.values()):
            raise HarpError("the weights of all fields are 0: give one a weight above 0")
        missing = [field for field in weights if weights[field] and field not in b]
        if missing:
            raise HarpError(f"b names no field {missing[0]!r}: give it a number from 0 to 1")
        return cls(
            tuple(fields),
            tuple(float(weights.get(field, 0)) for field in fields),
            tuple(float(b.get(field, 0)) for field in fields),
            float(k1),
        )

    @property
    def active(self) -> tuple[int, ...]:
        """The numbers of the fields that have a weight."""
        return tuple(np.flatnonzero(self.weights).tolist())

    @property
    def arguments(self) -> dict[str, Any]:
        """The same as arguments of `FieldedBm25`."""
        return {
            "weights": dict(zip(self.fields, self.weights, strict=True)),
            "k1": self.k1,
            "b": dict(zip(self.fields, self.b, strict=True)),
        }

    def scores(
        self, counts: np.ndarray, relative_lengths: np.ndarray, weight: np.ndarray | float
    ) -> np.ndarray:
        """Score documents by one term (BM25F, Zaragoza et al. 2004, eq. 2 and 3).

        The count of a field is divided by 1 - b + b · length / mean length of this field, and the
        weighted sum x over the fields is saturated once: weight · (k1 + 1) · x / (k1 + x).

        Args:
            counts: (fields, documents) how often each field has the term.
            relative_lengths: (fields, documents) length over mean length.
            weight: of the term, one for all documents or (documents,).

        Returns:
            (documents,) float64.
        """
        total = np.zeros(counts.shape[1])
        for field in self.active:
            b = self.b[field]
            normalized = counts[field] / (1 - b + b * relative_lengths[field])
            total += self.weights[field] * normalized
        saturated = np.divide(total, self.k1 + total, out=np.zeros_like(total), where=total > 0)
        return weight * (self.k1 + 1) * saturated


def term_weight(documents: int, frequency: int) -> float:
    """Weigh a term by how many of the documents have it, as PISA does; at least 1e-6."""
    return max(1e-6, float(np.log((documents - frequency + 0.5) / (frequency + 0.5))))


@dataclass(eq=False, repr=False)
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

    index: FieldedIndex
    weights: Mapping[str, float] | None = None
    _: KW_ONLY
    k1: float = 0.9
    b: float | Mapping[str, float] = 0.4
    num_results: int = 1000
    verbose: bool = False

    def __post_init__(self) -> None:
        _ = self.settings  # so that wrong arguments are refused here

    @property
    def settings(self) -> FieldSettings:
        """The parameters, by the present attributes."""
        checked("num_results", Count, self.num_results)
        return FieldSettings.from_arguments(self.index.fields, self.weights, self.k1, self.b)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Retrieve for each query.

        Args:
            inp: rows of ``qid`` and ``query``.

        Returns:
            The rows, repeated for each result, with new ``docno``, ``score`` (float64) and ``rank``
            (from 0).

        Raises:
            HarpError: a query is not a string, or a qid is there twice; the message names the qid.
        """
        pt.validate.query_frame(inp, extra_columns=["query"], context=self)
        check_queries(inp)
        settings, queries = self.settings, column_texts(inp, "query")
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
        matching = np.flatnonzero(scores)
        matching = matching[best(scores[matching], matching, self.num_results)]
        return postings.docnos[matching], scores[matching]

    def _comparison_key(self) -> tuple[Any, ...]:
        return self.index, self.settings, self.num_results
