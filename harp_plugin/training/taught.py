"""Pair groups with the scores of a teacher."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..tasks import PairGroup
from .data import PairGroups

__all__ = ["TaughtGroups", "Teacher"]

Teacher = Callable[[Sequence[str], Sequence[str]], np.ndarray]
"""Scores queries and documents, pair by pair: float32 of shape (pairs,)."""


class TaughtGroups:
    """Pair groups of which a teacher scores each member when a group is drawn.

    Args:
        groups: the pair groups.
        teacher: scores their pairs.
    """

    has_teacher_scores = True

    def __init__(self, groups: PairGroups, teacher: Teacher) -> None:
        self._groups = groups
        self._teacher = teacher

    def __getattr__(self, name: str) -> Any:
        """Return what else the groups have, such as their fingerprint and their counts."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._groups, name)

    def __len__(self) -> int:
        return len(self._groups)

    def group(self, epoch: int, index: int) -> PairGroup:
        """Return the group at an index of an epoch, with the teacher's scores."""
        group = self._groups.group(epoch, index)
        scores = self._teacher(*zip(*((p.query, p.document) for p in group.members), strict=True))
        return replace(group, teacher_scores=tuple(scores.tolist()))
