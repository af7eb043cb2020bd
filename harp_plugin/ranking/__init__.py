"""Score pairs with a checkpoint: the scorer, and the PyTerrier rerankers that use it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .combined import HarpEnsemble, HarpFeatures
    from .fusion import HarpFusion
    from .pipeline import HarpPipeline
    from .scorer import Scorer
    from .transformer import HarpReranker

__all__ = ["HarpEnsemble", "HarpFeatures", "HarpFusion", "HarpPipeline", "HarpReranker", "Scorer"]

_MODULES = {
    "HarpEnsemble": ".combined",
    "HarpFeatures": ".combined",
    "HarpFusion": ".fusion",
    "HarpPipeline": ".pipeline",
    "HarpReranker": ".transformer",
    "Scorer": ".scorer",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(_MODULES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
