"""First stages by an encoder of sentence-transformers, which rerank as well."""

from .retriever import HarpRetriever
from .transformer import DenseCosine

__all__ = ["DenseCosine", "HarpRetriever"]
