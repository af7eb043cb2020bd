"""Judged queries with the documents that a model can learn from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..errors import HarpError
from ..sampling import stable_id

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["JudgedQueries", "JudgedQuery", "check_judgments", "few_shot_order", "read_query_ids"]


class JudgedQuery(NamedTuple):
    """A query with the documents that may be drawn for it, by their ids or their texts.

    Attributes:
        id: of the query.
        query: its text.
        positives: the relevant documents.
        negatives: the other documents.
        swapped: whether documents and query have changed places, as in HARP's RQP.
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

    def scored(self) -> JudgedQuery:
        """Leave out the documents that have no teacher's score, where scores are read."""
        scores = self.teacher_scores
        if scores is None:
            return self
        positives, negatives = (
            [document for document in documents if document in scores]
            for documents in (self.positives, self.negatives)
        )
        return self._replace(positives=positives, negatives=negatives)


class JudgedQueries(ABC):
    """A sequence of judged queries.

    Args:
        source: what has the queries, in an error.
        teacher: whether each document has a teacher's score.

    Attributes:
        fingerprint: changes when the queries or what may be drawn for them change.
        drops: number of queries left out, by reason.
        has_teacher_scores: whether each document has a teacher's score.
        without_teacher_score: number of documents left out because they have none.
    """

    fingerprint: str

    def __init__(self, source: str, *, teacher: bool) -> None:
        self.source = source
        self.drops: Counter[str] = Counter()
        self.has_teacher_scores = teacher
        self.without_teacher_score = 0

    @abstractmethod
    def __len__(self) -> int:
        """Number of queries."""

    @abstractmethod
    def judged(self, index: int) -> JudgedQuery:
        """Return the query at an index."""

    @abstractmethod
    def texts(self, documents: Sequence[str]) -> list[str]:
        """Return the texts of documents that `judged` gave, in their order."""

    def drop_phrases(self) -> list[str]:
        """Write one phrase for each reason for which queries were left out."""
        return [
            f"{count:,} {'query' if count == 1 else 'queries'} {reason}"
            for reason, count in sorted(self.drops.items())
        ]

    def _take_scored(self, judged: JudgedQuery) -> JudgedQuery | str:
        """Leave out documents without a teacher's score, and count them.

        Returns:
            The query, or the reason why it cannot be learnt from.
        """
        scored = judged.scored()
        self.without_teacher_score += len(judged.positives) - len(scored.positives)
        self.without_teacher_score += len(judged.negatives) - len(scored.negatives)
        if scored.positives and scored.negatives:
            return scored
        kind = "negative" if scored.positives else "relevant document"
        return f"without a {kind} that has a teacher score"

    def _check_enough(self, count: int, wanted: int | None) -> None:
        """Check that there are queries to learn from: as many as are wanted, or at least one.

        Raises:
            HarpError: there are fewer.
        """
        if count >= (wanted or 1):
            return
        reasons = ", ".join(self.drop_phrases()) or "there are no others"
        short = f"only {count} of {wanted} queries" if count else "no query"
        raise HarpError(f"{self.source} has {short} to learn from: {reasons}")


def few_shot_order(ids: Iterable[str], seed: int, purpose: str = "few-shot") -> list[str]:
    """Put query ids into a random order, from whose head fewer or more queries are taken.

    The index of an id is drawn from the seed and the id alone. So the first n ids are among the
    first n + 1, and further ids do not change the order of the others.

    Args:
        ids: of queries.
        seed: of the draw.
        purpose: what the queries are drawn for; another purpose gives another order.
    """
    return sorted(set(ids), key=lambda id: (stable_id(seed, purpose, id), id))


def read_query_ids(path: str | None, allowed: Collection[str], source: str) -> set[str]:
    """Read a file of query ids, one a line.

    Args:
        path: the file; None for all allowed ids.
        allowed: the ids that the file may list.
        source: what has those queries, in an error.

    Raises:
        HarpError: the file cannot be read, is empty, or lists a query that is not allowed.
    """
    if path is None:
        return set(allowed)
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise HarpError(f"cannot read query_ids {path}: {error}") from error
    ids = set(map(str.strip, lines)) - {""}
    if unknown := sorted(ids.difference(allowed)):
        raise HarpError(f"query_ids {path}: no query {unknown[0]!r} in {source}: list one a line")
    if not ids:
        raise HarpError(f"query_ids {path} is empty: list one query id a line")
    return ids


def check_judgments(qrels: pd.DataFrame, source: str = "") -> None:
    """Check that no document is judged twice for a query, differently.

    Args:
        qrels: three columns: the query, the document and its grade.
        source: what has them, before the message.

    Raises:
        HarpError: one is; the message names both grades.
    """
    columns = list(qrels.columns[:3])
    distinct = qrels[columns].drop_duplicates()
    double = distinct[distinct.duplicated(columns[:2], keep=False)]
    if len(double):
        query, document, first = map(str, double.iloc[0])
        same = double[(double[columns[:2]] == double.iloc[0, :2]).all(axis=1)]
        other = str(same.iloc[1, 2])
        raise HarpError(
            f"{source}query {query}: document {document} is judged {first} and {other}: keep one "
            "judgment"
        )
