"""The cosine of an encoder of sentence-transformers: a first stage and a reranker."""

from .transformer import DenseCosine

__all__ = ["DenseCosine"]
