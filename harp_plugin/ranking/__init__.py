"""Checkpoint → scores: the scorer, and the PyTerrier reranker over it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .scorer import Scorer
    from .transformer import HarpReranker

__all__ = ["HarpReranker", "Scorer"]


def __getattr__(name: str) -> Any:
    if name == "Scorer":
        from .scorer import Scorer

        return Scorer
    if name == "HarpReranker":
        from .transformer import HarpReranker

        return HarpReranker
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
