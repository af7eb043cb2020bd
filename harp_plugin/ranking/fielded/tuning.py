"""Weights, k1 and b that suit judged queries best."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import ir_measures
import numpy as np
import pandas as pd
from tqdm import tqdm

from ...errors import HarpError
from ..frames import best
from ..ranking_measures import parse_measure
from ..terms import query_terms
from ..texts import column_texts
from .bm25 import FieldSettings, term_weight
from .index import FieldedIndex

__all__ = ["GRIDS", "Tuning", "tune"]

GRIDS: dict[str, tuple[float, ...]] = {
    "weights": (0, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10),
    "k1": (0.3, 0.6, 0.9, 1.2, 1.6, 2, 3, 5),
    "b": (0, 0.2, 0.4, 0.6, 0.8, 1),
}
"""The values that are tried."""
_START: dict[str, Any] = {"weights": None, "k1": 0.9, "b": 0.4}
_MOST_ROUNDS = 10
_DEPTH = 100


@dataclass(frozen=True)
class Tuning:
    """What `tune` has chosen.

    Attributes:
        settings: the best ones.
        measure: by which they were chosen.
        value: of the measure with these settings, mean over the queries.
        tried: a row for each settings that were tried, in this order: weights, k1, b, and the
            measure.
    """

    settings: FieldSettings
    measure: str
    value: float
    tried: pd.DataFrame

    @property
    def arguments(self) -> dict[str, Any]:
        """The settings as arguments of `FieldedBm25`."""
        return self.settings.arguments


def tune(
    index: FieldedIndex,
    topics: pd.DataFrame,
    qrels: pd.DataFrame,
    measure: Any = "RR@10",
    *,
    start: FieldSettings | None = None,
    quiet: bool = True,
) -> Tuning:
    """Choose the weights of fields, k1 and b of each field by judged queries.

    One parameter after the other takes the best value of its grid (`GRIDS`), the others kept, until
    a round over all of them changes nothing; of equal values, the present one is kept. Nothing is
    drawn at random. The postings of the queries' terms are read once, about 100 bytes for each.

    Args:
        index: of the documents.
        topics: columns ``qid`` and ``query``.
        qrels: columns ``qid``, ``docno`` and ``label``.
        measure: of ir_measures, such as ``RR@10``; one without a cutoff sees 100 results.
        start: where the search starts; by default weights of 1, k1 = 0.9 and b = 0.4.
        quiet: show no progress bar.

    Raises:
        HarpError: the measure is unknown, or no topic has a judgment.
    """
    judged = topics[topics["qid"].isin(qrels["qid"])]
    if judged.empty:
        raise HarpError(f"none of the {len(topics)} queries to tune on has a judgment: name others")
    rankings, measure = _Rankings(index, judged), parse_measure(measure)
    names = {"qid": "query_id", "docno": "doc_id", "label": "relevance"}
    judgments = qrels[qrels["qid"].isin(judged["qid"])].rename(columns=names)
    evaluator = ir_measures.evaluator([measure], judgments)
    values: dict[FieldSettings, float] = {}
    settings = start or FieldSettings.from_arguments(index.fields, **_START)
    with tqdm(desc="tune", unit="setting", disable=quiet) as bar:

        def value(settings: FieldSettings) -> float:
            if settings not in values:
                run = rankings.rank(settings, measure.params.get("cutoff") or _DEPTH)
                values[settings] = float(evaluator.calc_aggregate(run)[measure])
                bar.update()
                bar.set_postfix({str(measure): f"{max(values.values()):.4f}"})
            return values[settings]

        for _ in range(_MOST_ROUNDS):
            before = settings
            for parameter in _parameters(len(index.fields)):
                settings = max([settings, *_varied(settings, *parameter)], key=value)
            if settings == before:
                break
    tried = pd.json_normalize([{**s.arguments, str(measure): v} for s, v in values.items()])
    return Tuning(settings, str(measure), values[settings], tried)


def _parameters(fields: int) -> list[tuple[str, int]]:
    """Name the parameters: what it is, and the number of its field."""
    weights = [("weights", field) for field in range(fields)] if fields > 1 else []
    return [*weights, ("k1", 0), *(("b", field) for field in range(fields))]


def _varied(settings: FieldSettings, name: str, field: int) -> Iterator[FieldSettings]:
    """Give one parameter each value of its grid, unless this changes no score."""
    for value in map(float, GRIDS[name]):
        if name == "k1":
            yield replace(settings, k1=value)
        elif name == "b" and settings.weights[field]:
            yield replace(settings, b=_with(settings.b, field, value))
        elif name == "weights":
            changed = replace(settings, weights=_with(settings.weights, field, value))
            if changed.active:
                yield changed


def _with(values: tuple[float, ...], index: int, value: float) -> tuple[float, ...]:
    return (*values[:index], value, *values[index + 1 :])


class _Rankings:
    """Rankings of queries by any settings.

    All postings of all queries' terms stand in one row of arrays: (fields, postings) counts and
    lengths, and for each posting the result that its score counts for. Results are the documents
    that have a term of a query; those of a query stand together, in the order of their docnos.
    """

    def __init__(self, index: FieldedIndex, topics: pd.DataFrame) -> None:
        self._postings = index.postings
        self._fields = range(len(index.fields))
        counts, documents, results = [], [], []
        self._terms: list[int] = []
        self.qids: list[str] = []
        self._ends, self._documents = [0], []
        for qid, query in zip(topics["qid"], column_texts(topics, "query"), strict=True):
            parts = [self._postings.of_term(term, self._fields) for term in query_terms(query)]
            parts = [(numbers, of_fields) for numbers, of_fields in parts if len(numbers)]
            if not parts:
                continue
            matching = np.unique(np.concatenate([numbers for numbers, _ in parts]))
            for numbers, of_fields in parts:
                counts.append(of_fields.astype(np.float32))
                documents.append(numbers)
                results.append(self._ends[-1] + np.searchsorted(matching, numbers))
                self._terms.append(len(numbers))
            self.qids.append(qid)
            self._documents.append(matching)
            self._ends.append(self._ends[-1] + len(matching))
        if not self.qids:
            raise HarpError(
                "no document has a word of the queries to tune on: check that both are of one "
                "collection and one language"
            )
        self._counts = np.concatenate(counts, axis=1)
        lengths = self._postings.relative_lengths
        self._lengths = lengths[:, np.concatenate(documents)].astype(np.float32)
        self._results = np.concatenate(results)
        self._weights: dict[tuple[int, ...], np.ndarray] = {}

    def rank(self, settings: FieldSettings, depth: int) -> pd.DataFrame:
        """Rank: columns query_id, doc_id, score, of which the latter falls with the rank."""
        weights = self._term_weights(settings.active)
        scores = settings.scores(self._counts, self._lengths, weights)
        totals = np.bincount(self._results, weights=scores, minlength=self._ends[-1])
        qids: list[str] = []
        numbers = []
        for qid, matching, start in zip(self.qids, self._documents, self._ends, strict=False):
            of_query = totals[start : start + len(matching)]
            chosen = best(of_query, matching, depth)
            chosen = chosen[of_query[chosen] > 0]
            numbers.append(matching[chosen])
            qids += [qid] * len(chosen)
        docnos = self._postings.docnos[np.concatenate(numbers)]
        scores = -np.arange(len(docnos), dtype=np.float64)
        return pd.DataFrame({"query_id": qids, "doc_id": docnos, "score": scores})

    def _term_weights(self, active: tuple[int, ...]) -> np.ndarray:
        """(postings,) the weight of each posting's term, by the documents that have it."""
        if active not in self._weights:
            starts = np.cumsum([0, *self._terms[:-1]])
            there = self._counts[list(active)].any(axis=0)
            frequencies = np.add.reduceat(there.astype(np.int64), starts)
            number = len(self._postings.docnos)
            weights = [term_weight(number, int(frequency)) for frequency in frequencies]
            self._weights[active] = np.repeat(weights, self._terms)
        return self._weights[active]
