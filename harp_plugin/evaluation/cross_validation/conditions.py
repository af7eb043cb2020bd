"""What a cross-validation compares: systems at numbers of training queries, fold by fold."""

from __future__ import annotations

from dataclasses import dataclass

from ..folds import Fold
from ..options import file_stem
from .options import count_label

__all__ = ["Condition", "FoldRun"]


@dataclass(frozen=True)
class Condition:
    """A system that is fine-tuned on a number of queries by a seed. Its folds make up one run.

    Attributes:
        system: the name of its row.
        query_count: number of training queries; None for all, 0 for no fine-tuning.
        seed: of the fine-tuning.
    """

    system: str
    query_count: int | None
    seed: int

    @property
    def name(self) -> str:
        """The condition as a part of file names."""
        count = count_label(self.query_count)
        return f"{file_stem(self.system)}-{count}-queries-seed-{self.seed}"


@dataclass(frozen=True)
class FoldRun:
    """The run of one held-out fold under a condition, with one candidate of the grid's values.

    Attributes:
        condition: the condition.
        fold: which queries are learnt from and which are ranked.
        candidate: the place of the candidate in `CrossValidationOptions.candidates`.
    """

    condition: Condition
    fold: Fold
    candidate: int

    @property
    def name(self) -> str:
        """The run as a file name, unique within its condition."""
        candidate = f"-candidate-{self.candidate + 1}" if self.fold.validation else ""
        return f"fold-{self.fold.number}{candidate}"

    def __str__(self) -> str:
        count = count_label(self.condition.query_count)
        return f"{self.condition.system}, {count} queries, {self.name}"
