"""The unigram language model of a collection and of its documents (PROP, sections 2 and 3.1).

`LanguageModel` and `DocumentModel` draw words of the whole vocabulary, for the task of PROP.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from ..text import words
from .collection import CountedWords

__all__ = ["DocumentModel", "LanguageModel", "smoothed_probability"]


def smoothed_probability(
    frequency: np.ndarray, length: np.ndarray | int, background: np.ndarray, mu: float
) -> np.ndarray:
    """P(w|D) = (tf + μ P(w|C)) / (|D| + μ), by Dirichlet smoothing (PROP, eq. 3).

    Args:
        frequency: tf, how often each word stands in the document.
        length: |D|, the number of words of the document.
        background: P(w|C) of each word.
        mu: μ, at least 0.

    Returns:
        The probabilities, float64; 0 where both |D| and μ are 0.
    """
    total = np.maximum(np.asarray(length) + mu, np.finfo(np.float64).tiny)
    return (frequency + mu * background) / total


class LanguageModel:
    """The language model of a collection, from which words of its documents are drawn.

    The vocabulary V is the words of the collection without rare words and without those of a stop
    list. Only words of V are counted in |D|, P(w|C) and μ. A word is drawn by P(w|D) times the
    chance that subsampling keeps it, min(1, √(t / f)) with f its fraction of all occurrences
    (word2vec), as the authors' code does by rejection.

    Args:
        collection: the words of all documents.
        mu: μ; None takes the mean number of words of a document.
        least: a word with fewer occurrences is not in V.
        left_out: these words are not in V.
        subsampling: the threshold t; 0 subsamples nothing.
        is_uniform: draw every word of V alike (the ablation ``random`` of PROP).

    Attributes:
        words: the vocabulary; the number of a word is its index in this list.
        background: P(w|C) of each word, float64 of shape (words,).
        keep: the chance that subsampling keeps each word, float64 of shape (words,).
        cumulative: the running sum of ``background * keep``, float64 of shape (words,).
    """

    def __init__(
        self,
        collection: CountedWords,
        *,
        mu: float | None = None,
        least: float = 1,
        left_out: frozenset[str] = frozenset(),
        subsampling: float = 0.0,
        is_uniform: bool = False,
    ) -> None:
        frequent = np.flatnonzero(collection.occurrences >= max(1.0, least))
        candidates = collection.words.take(frequent).to_pylist()
        kept = frequent[np.array([word not in left_out for word in candidates], dtype=bool)]
        self.words = [word for word in candidates if word not in left_out]
        self._numbers = {word: number for number, word in enumerate(self.words)}
        occurrences = collection.occurrences[kept]
        self.mu = occurrences.sum() / max(1, collection.texts) if mu is None else mu
        self.background = shares = occurrences / max(1, occurrences.sum())
        self.keep = (
            np.sqrt(np.minimum(1.0, subsampling / shares)) if subsampling else np.ones(len(shares))
        )
        self.is_uniform = is_uniform
        self.cumulative = np.cumsum(self.background * self.keep)

    def document(self, text: str) -> DocumentModel:
        """Make the language model of a document."""
        frequencies = Counter(
            self._numbers[word] for word in map(str.lower, words(text)) if word in self._numbers
        )
        return DocumentModel(self, frequencies)


class DocumentModel:
    """P(w|D) of one document (PROP, eq. 3).

    Args:
        language_model: the language model of its collection.
        frequencies: how often each word of the vocabulary stands in the document, by its number.
    """

    def __init__(self, language_model: LanguageModel, frequencies: Counter[int]) -> None:
        self.language_model = language_model
        self.length = frequencies.total()
        self._frequencies = frequencies
        self._numbers = np.array(sorted(frequencies), dtype=np.int64)
        counts = np.array([frequencies[number] for number in self._numbers.tolist()])
        self._cumulative = np.cumsum(counts * language_model.keep[self._numbers])

    def draw(self, rng: np.random.Generator, size: int) -> np.ndarray | None:
        """Draw words with replacement.

        Returns:
            Their numbers in the vocabulary, int64 of shape (size,); None where no word can be
            drawn: μ is 0 and the document has no word of the vocabulary.
        """
        model, background = self.language_model, self.language_model.cumulative
        if model.is_uniform:
            return rng.integers(len(model.words), size=size)
        own_mass = self._cumulative[-1] if self.length else 0.0
        mass = own_mass + model.mu * background[-1]
        if not mass:
            return None
        at = rng.random(size) * mass
        inside = np.searchsorted(self._cumulative, at, side="right")
        beyond = (at - own_mass) / (model.mu or 1.0)
        outside = np.searchsorted(background, beyond, side="right")
        last = np.minimum(inside, len(self._numbers) - 1)
        own = self._numbers[last] if self.length else 0
        return np.where(at < own_mass, own, np.minimum(outside, len(background) - 1))

    def log_likelihood(self, drawn: np.ndarray) -> float:
        """Return log P(S|D) of drawn words (PROP, eq. 2 and 3); -inf where P(S|D) is 0.

        Args:
            drawn: the numbers of the words, int64 of shape (words,).
        """
        frequency = np.array([self._frequencies.get(number, 0) for number in drawn.tolist()])
        model = self.language_model
        chances = smoothed_probability(frequency, self.length, model.background[drawn], model.mu)
        return float(np.log(np.sort(chances)).sum()) if chances.all() else -np.inf

    def words(self, drawn: np.ndarray) -> list[str]:
        """Return the words of these numbers."""
        return [self.language_model.words[number] for number in drawn.tolist()]
