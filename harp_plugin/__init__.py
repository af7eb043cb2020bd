"""Hyperlink pre-training for rerankers, on Tevatron, PyTerrier and ir_datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .ranking import HarpReranker, Scorer

__all__ = ["HarpReranker", "Scorer", "__version__"]


def __getattr__(name: str) -> Any:
    if name in ("HarpReranker", "Scorer"):
        from . import ranking

        return getattr(ranking, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
