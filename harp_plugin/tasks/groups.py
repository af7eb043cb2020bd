"""What a pre-training task gives: a positive pair, negatives, and where their texts come from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

__all__ = ["DocumentOrigin", "Pair", "PairGroup", "QueryOrigin", "SampledWord", "pair_group"]


@dataclass(frozen=True, slots=True)
class SampledWord:
    """A word of a query that was drawn by its weight in a text.

    Attributes:
        word: the word as it stands in the query.
        anchor: id of the anchor that weighs it, where it was drawn from the anchor's sentence.
        page: id of the page, where it was drawn from the page's lead.
    """

    word: str
    anchor: int | None = None
    page: int | None = None


@dataclass(frozen=True, slots=True)
class QueryOrigin:
    """Where a query comes from. What does not apply to the query is None.

    Attributes:
        page: id of the page that the query's text comes from; it is the page on which the anchor
            or the sentence stands.
        sentence: id of the linked sentence that the query is, or that holds its anchor.
        anchor: id of the anchor whose text stands in the query.
        sampled: the words of the query that were drawn by their weights, in reading order.
        query_id: id of the query in a collection of judged queries.
    """

    page: int | None = None
    sentence: int | None = None
    anchor: int | None = None
    sampled: tuple[SampledWord, ...] = ()
    query_id: str | None = None


@dataclass(frozen=True, slots=True)
class DocumentOrigin:
    """Where a document comes from. What does not apply to the document is None.

    Attributes:
        page: id of the page that the document is, or is a part of.
        place: where the document is a section or a part of one, the place of the section in the
            page's tree; the lead's is 0.
        document_id: id of the document in a judged collection.
    """

    page: int | None = None
    place: int | None = None
    document_id: str | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """A pseudo query and a document, as the cross-encoder reads them.

    Pairs with equal texts are equal, wherever the texts come from.

    Attributes:
        query: text of the query.
        document: text of the document.
        query_origin: where the query comes from, or None where the task does not say.
        document_origin: where the document comes from, or None where the task does not say.
    """

    query: str
    document: str
    query_origin: QueryOrigin | None = field(default=None, compare=False)
    document_origin: DocumentOrigin | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class PairGroup:
    """One training example: a positive pair and at least one negative pair.

    Attributes:
        task: name of the task that drew the group.
        positive: the pair that must score higher.
        negatives: the pairs that must score lower.
        teacher_scores: a teacher's score of each member, where the data have such scores.
        relevant: ids of other pages, or of other documents of a judged collection, that may be
            relevant to the query. They are not its negatives where those of other groups are used.
    """

    task: str
    positive: Pair
    negatives: tuple[Pair, ...]
    teacher_scores: tuple[float, ...] | None = None
    relevant: frozenset[int | str] = frozenset()

    @property
    def members(self) -> tuple[Pair, ...]:
        """All pairs of the group, the positive first."""
        return (self.positive, *self.negatives)


def pair_group(task: str, pairs: Iterable[Pair], relevant: Iterable[int] = ()) -> PairGroup | None:
    """Group pairs, the positive first; None without a negative."""
    positive, *negatives = pairs
    if not negatives:
        return None
    return PairGroup(task, positive, tuple(negatives), relevant=frozenset(relevant))
