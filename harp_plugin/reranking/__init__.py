"""TREC runs of any engine, reranked: the command ``harp rerank``."""

from .options import RerankOptions
from .service import rerank

__all__ = ["RerankOptions", "rerank"]
