"""Score pairs with a checkpoint: the scorer, and the PyTerrier rerankers that use it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_attributes

if TYPE_CHECKING:
    from .combined import HarpEnsemble, HarpFeatures
    from .fusion import HarpFusion
    from .pipeline import HarpPipeline
    from .scorer import Scorer
    from .transformer import HarpReranker

__all__ = ["HarpEnsemble", "HarpFeatures", "HarpFusion", "HarpPipeline", "HarpReranker", "Scorer"]

__getattr__ = lazy_attributes(
    __name__,
    {
        "HarpEnsemble": ".combined",
        "HarpFeatures": ".combined",
        "HarpFusion": ".fusion",
        "HarpPipeline": ".pipeline",
        "HarpReranker": ".transformer",
        "HarpRetriever": ".dense",
        "Scorer": ".scorer",
    },
)
