"""BM25 over the fields of documents, with weights that judged queries choose."""

from .index import FieldedIndex
from .settings import FieldSettings
from .transformer import FieldedBm25
from .tuning import Tuning, tune

__all__ = ["FieldSettings", "FieldedBm25", "FieldedIndex", "Tuning", "tune"]
