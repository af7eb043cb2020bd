"""Score pairs with a checkpoint: the scorer, and the PyTerrier rerankers that use it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import user_message

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
    "HarpRetriever": ".dense",
    "Scorer": ".scorer",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_MODULES[name], __name__), name)
    except ModuleNotFoundError as error:
        message = f"{name} cannot be imported: {user_message(error) or error}"
        raise ModuleNotFoundError(message, name=error.name) from error
