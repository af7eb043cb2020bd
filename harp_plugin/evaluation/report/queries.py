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
    queries = collection.topics.set_index("qid")["query"]
    judged = collection.qrels[collection.qrels["label"] > 0]
    relevant = set(zip(judged["qid"], judged["docno"], strict=True))

    def shown(name: str, qid: str) -> list[Shown]:
        run = runs[name]
        best = run[(run["qid"] == qid) & (run["rank"] < depth)].sort_values("rank")
        docnos = best["docno"].tolist()
        texts = collection.texts(docnos)
        return [
            Shown(docno, _shortened(queries[qid], texts[docno]), (qid, docno) in relevant)
            for docno in docnos
        ]

    def changed(qid: str) -> ChangedQuery:
        first, second = (shown(name, qid) for name in (results.baseline, system))
        return ChangedQuery(qid, queries[qid], before[qid], after[qid], first, second)

    return list(map(changed, won)), list(map(changed, lost))


def _shortened(query: str, text: str) -> str:
    passage = " ".join(query_passage(query, text).split())
    return passage if len(passage) <= _MOST_CHARACTERS else f"{passage[:_MOST_CHARACTERS]} …"
