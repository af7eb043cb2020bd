"""The queries for which a system ranks much better or much worse than the baseline."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from ...collections.dataset import JudgedDataset
from ...text import query_passage
from ..results import Results

__all__ = ["ChangedQuery", "Shown", "changed_queries"]

_MOST_CHARACTERS = 400


@dataclass(frozen=True, slots=True)
class Shown:
    """A document that a system ranks high for a query.

    Attributes:
        docno: of the document.
        text: the part of it that shares most words with the query.
        is_relevant: whether a judgment says that it is relevant.
    """

    docno: str
    text: str
    is_relevant: bool


@dataclass(frozen=True, slots=True)
class ChangedQuery:
    """A query with the documents that both systems rank first.

    Attributes:
        qid: of the query.
        text: of the query.
        before: the measure of the baseline.
        after: the measure of the system.
        first: the best documents of the baseline.
        second: the best documents of the system.
    """

    qid: str
    text: str
    before: float
    after: float
    first: list[Shown]
    second: list[Shown]


def changed_queries(
    results: Results,
    runs: dict[str, pd.DataFrame],
    collection: JudgedDataset,
    system: str,
    measure: str,
    *,
    most: int = 10,
    depth: int = 3,
) -> tuple[list[ChangedQuery], list[ChangedQuery]]:
    """Find the queries that a system wins and loses by most against the baseline.

    Args:
        results: of the evaluation.
        runs: row → run with columns qid, docno and rank.
        collection: that was searched.
        system: the row of the system.
        measure: by which queries are compared.
        most: how many queries are shown of each kind.
        depth: how many documents of each system are shown.

    Returns:
        The queries won and the queries lost, the largest differences first.
    """
    before = results.per_query[results.baseline][measure]
    after = results.per_query[system][measure]
    order = sorted(before, key=lambda qid: (before[qid] - after[qid], qid))
    won = [qid for qid in order if after[qid] > before[qid]][:most]
    lost = [qid for qid in reversed(order) if after[qid] < before[qid]][:most]
    shown = _Shower(runs, collection, depth)

    def changed(qid: str) -> ChangedQuery:
        first, second = (shown(name, qid) for name in (results.baseline, system))
        return ChangedQuery(qid, shown.queries[qid], before[qid], after[qid], first, second)

    return list(map(changed, won)), list(map(changed, lost))


class _Shower:
    """Looks up the best documents of a row for a query."""

    def __init__(
        self, runs: dict[str, pd.DataFrame], collection: JudgedDataset, depth: int
    ) -> None:
        self.queries = dict(zip(*collection.topics[["qid", "query"]].T.values, strict=True))
        self._collection = collection
        self._best = {name: run[run["rank"] < depth] for name, run in runs.items()}
        qrels = collection.qrels[collection.qrels["label"] > 0]
        self._relevant = set(zip(qrels["qid"], qrels["docno"], strict=True))

    def __call__(self, name: str, qid: str) -> list[Shown]:
        run = self._best[name]
        docnos = run[run["qid"] == qid].sort_values("rank")["docno"].tolist()
        texts = self._collection.texts(docnos)
        return [
            Shown(docno, self._shortened(qid, texts[docno]), (qid, docno) in self._relevant)
            for docno in docnos
        ]

    def _shortened(self, qid: str, text: str) -> str:
        passage = " ".join(query_passage(self.queries[qid], text).split())
        return passage if len(passage) <= _MOST_CHARACTERS else f"{passage[:_MOST_CHARACTERS]} …"
