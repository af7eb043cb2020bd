"""BM25 over the fields of documents, with weights that judged queries choose."""

from .bm25 import FieldedBm25, FieldSettings
from .features import LexicalFeatures
from .index import FieldedIndex
from .tuning import Tuning, tune

__all__ = ["FieldSettings", "FieldedBm25", "FieldedIndex", "LexicalFeatures", "Tuning", "tune"]
