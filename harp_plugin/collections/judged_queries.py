"""Judged queries with the documents that a model can learn from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from ..errors import HarpError

__all__ = ["JudgedQueries", "JudgedQuery", "check_enough_queries", "drop_phrases"]


class JudgedQuery(NamedTuple):
    """A query with the documents that may be drawn for it, by their ids or their texts.

    Attributes:
        id: of the query.
        query: its text.
        positives: the relevant documents.
        negatives: the other documents.
        swapped: whether the documents stand in the query's place, as in HARP's RQP.
        teacher_scores: a teacher's score of each document, where a loss reads it.
        document_ids: the ids of documents that are named by their texts, as far as they have ids;
            None where the documents are named by their ids.
    """

    id: str
    query: str
    positives: Sequence[str]
    negatives: Sequence[str]
    swapped: bool = False
    teacher_scores: Mapping[str, float] | None = None
    document_ids: Mapping[str, str] | None = None


class JudgedQueries(Protocol):
    """A sequence of judged queries, such as `DatasetQueries` and `JsonLinesQueries`.

    Attributes:
        fingerprint: changes when the queries or what may be drawn for them change.
        drops: number of queries left out, by reason.
        has_teacher_scores: whether each document has a teacher's score.
        without_teacher_score: number of documents left out because they have none.
    """

    fingerprint: str
    drops: Counter[str]
    has_teacher_scores: bool
    without_teacher_score: int

    def __len__(self) -> int:
        """Number of queries."""

    def judged(self, index: int) -> JudgedQuery:
        """The query at an index."""

    def texts(self, documents: Sequence[str]) -> list[str]:
        """The texts of documents that `judged` gave, in their order."""


def drop_phrases(drops: Mapping[str, int]) -> list[str]:
    """Write one phrase for each reason for which queries were left out."""
    return [
        f"{count:,} {'query' if count == 1 else 'queries'} {reason}"
        for reason, count in sorted(drops.items())
    ]


def check_enough_queries(
    count: int, wanted: int | None, drops: Mapping[str, int], source: str
) -> None:
    """Check that there are queries to learn from.

    Args:
        count: how many there are.
        wanted: how many are asked for, None for at least one.
        drops: number of queries left out, by reason.
        source: what has the queries, in an error.

    Raises:
        HarpError: there are fewer.
    """
    if count >= (wanted or 1):
        return
    reasons = ", ".join(drop_phrases(drops)) or "there are no others"
    short = f"only {count} of {wanted} queries" if count else "no query"
    raise HarpError(f"{source} has {short} to learn from: {reasons}")
