"""What a pre-training task gives: one positive pair and the pairs that must rank below it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Pair(NamedTuple):
    """A pseudo query and a document, as the cross-encoder reads them."""

    query: str
    document: str


@dataclass(frozen=True, slots=True)
class PairGroup:
    """One training example: a positive pair and at least one negative pair.

    Attributes:
        task: name of the task that drew it.
        positive: the pair that must score higher.
        negatives: the pairs that must score lower.
        teacher_scores: what a teacher gives each member, where the data say.
    """

    task: str
    positive: Pair
    negatives: tuple[Pair, ...]
    teacher_scores: tuple[float, ...] | None = None

    @property
    def members(self) -> tuple[Pair, ...]:
        """All pairs, the positive first."""
        return (self.positive, *self.negatives)
