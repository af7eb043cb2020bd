"""Hyperlink pre-training for rerankers, on Tevatron, PyTerrier and ir_datasets.

With this package, ir_datasets knows ``harp-encyclopedia`` and test collections, ``harp:FOLDER``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._version import __version__
from .collections.registration import register_on_import
from .lazy import lazy_attributes

if TYPE_CHECKING:
    from .ranking import HarpFusion, HarpPipeline, HarpReranker, Scorer
    from .ranking.dense import HarpRetriever

__all__ = ["HarpFusion", "HarpPipeline", "HarpReranker", "HarpRetriever", "Scorer", "__version__"]

register_on_import()
__getattr__ = lazy_attributes(__name__, dict.fromkeys(__all__, ".ranking"))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
