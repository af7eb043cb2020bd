"""BM25 of a query and a document, without an index."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from ..text import words
from .observations import word_list

__all__ = ["BM25"]

_K1, _B = 1.2, 0.75


@dataclass(frozen=True, slots=True)
class BM25:
    """Okapi BM25 with the parameters and the inverse document frequency of Lucene.

    Attributes:
        documents: number of documents of the collection.
        frequencies: in how many documents each lower-cased word stands.
        mean_length: words of a document, on average.
    """

    documents: int
    frequencies: Counter[str]
    mean_length: float

    @classmethod
    def of(cls, texts: Iterable[str]) -> BM25:
        """Count the words of a collection."""
        frequencies: Counter[str] = Counter()
        documents = length = 0
        for text in texts:
            text_words = words(text.lower())
            frequencies.update(set(text_words))
            documents += 1
            length += len(text_words)
        return cls(documents, frequencies, max(1.0, length / max(1, documents)))

    def score(self, query: str, document: str) -> float:
        """Score a document; a word that stands twice in the query counts twice."""
        counts = Counter(word_list(document))
        length = _K1 * (1 - _B + _B * counts.total() / self.mean_length)
        return sum(
            self._weight(word) * (_K1 + 1) * counts[word] / (counts[word] + length)
            for word in word_list(query)
            if word in counts
        )

    def _weight(self, word: str) -> float:
        frequency = self.frequencies[word]
        return math.log(1 + (self.documents - frequency + 0.5) / (frequency + 0.5))
