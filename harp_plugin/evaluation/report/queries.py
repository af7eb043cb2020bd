"""The queries for which a system ranks much better or much worse than the baseline."""

from __future__ import annotations

from typing import Any

import pandas as pd

from ...collections.dataset import JudgedDataset
from ...text import query_passage
from ..results import Results

__all__ = ["changed_queries"]

_MOST_CHARACTERS = 400
_NO_TEXT = "(not in this collection)"


def changed_queries(
    results: Results,
    runs: dict[str, pd.DataFrame],
    collection: JudgedDataset,
    system: str,
    measure: str,
    *,
    most: int = 10,
    depth: int = 3,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
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
        The queries won and the queries lost, the largest differences first. Of each: ``qid`` and
        ``text``; ``before`` and ``after``, the measure of the baseline and of the system; ``first``
        and ``second``, their best documents, each with ``docno``, ``text`` (the part that has most
        words of the query) and ``is_relevant``.
    """
    before = results.per_query[results.baseline][measure]
    after = results.per_query[system][measure]
    order = sorted(before, key=lambda qid: (before[qid] - after[qid], qid))
    won = [qid for qid in order if after[qid] > before[qid]][:most]
    lost = [qid for qid in reversed(order) if after[qid] < before[qid]][:most]
    queries = collection.topics.set_index("qid")["query"]
    judged = collection.qrels[collection.qrels["label"] > 0]
    relevant = set(zip(judged["qid"], judged["docno"], strict=True))

    def shown(name: str, qid: str) -> list[dict[str, Any]]:
        run = runs[name]
        best = run[(run["qid"] == qid) & (run["rank"] < depth)].sort_values("rank")
        docnos = best["docno"].tolist()
        texts = collection.existing_texts(docnos)
        return [
            {
                "docno": docno,
                "text": _shortened(queries[qid], texts.get(docno, _NO_TEXT)),
                "is_relevant": (qid, docno) in relevant,
            }
            for docno in docnos
        ]

    def changed(qid: str) -> dict[str, Any]:
        first, second = (shown(name, qid) for name in (results.baseline, system))
        return {
            "qid": qid,
            "text": queries[qid],
            "before": before[qid],
            "after": after[qid],
            "first": first,
            "second": second,
        }

    return list(map(changed, won)), list(map(changed, lost))


def _shortened(query: str, text: str) -> str:
    passage = " ".join(query_passage(query, text).split())
    return passage if len(passage) <= _MOST_CHARACTERS else f"{passage[:_MOST_CHARACTERS]} …"
