"""First stages by an encoder, which rerank as well, and the similarity of single words."""

from .retriever import HarpRetriever
from .transformer import DenseCosine
from .word_similarity import WordSimilarity

__all__ = ["DenseCosine", "HarpRetriever", "WordSimilarity"]
