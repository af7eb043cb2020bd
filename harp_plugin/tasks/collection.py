"""The unigram language model of a collection and of its documents (PROP, section 2 and 3.1)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import HarpError
from ..storage import read_manifest, read_table, table_files
from ..text import words
from .options import DrawOptions
from .terms import stop_words

_MOST = 50.0
_SHARE = 1e-6


@dataclass(frozen=True)
class CollectionWords:
    """How often each word occurs in the documents.

    Attributes:
        words: distinct, lower-cased, in an order of their own.
        occurrences: of each, int64 of shape (words,).
        documents: in how many it occurs, int64 of shape (words,).
        texts: number of documents.
    """

    words: np.ndarray
    occurrences: np.ndarray
    documents: np.ndarray
    texts: int

    @classmethod
    def read(cls, folder: Path) -> CollectionWords:
        """Read the finished stage ``words``.

        Raises:
            HarpError: it is unfinished or damaged.
        """
        texts = read_manifest(folder)["texts"]
        table_files(folder, "collection", whole=True)
        table = read_table(folder / "collection", ["word", "occurrences", "documents"])
        found = (table.column(name).to_numpy() for name in ("word", "occurrences", "documents"))
        words, occurrences, documents = found
        return cls(words, occurrences, documents, texts)


class LanguageModel:
    """The collection's part of every document's language model.

    The vocabulary V is the collection's words without stop words and rare words; only these are
    counted in |D|, P(w|C) and μ. A word is drawn by P(w|D) times the chance that subsampling keeps
    it, min(1, √(t / f)) with f its share of all occurrences (word2vec), as the authors' code does
    by rejection.

    Args:
        collection: the words of all documents.
        options: of drawing, those named ``prop_…`` and the stop list.

    Raises:
        HarpError: the vocabulary is empty.
    """

    def __init__(self, collection: CollectionWords, options: DrawOptions) -> None:
        least = options.number("prop_min_count")
        if least is None:
            least = min(_MOST, _SHARE * collection.occurrences.sum())
        stopped = stop_words(options.stop_words or "none")
        kept = np.flatnonzero(collection.occurrences >= max(1.0, least))
        kept = kept[~np.isin(collection.words[kept].astype(str), list(stopped))]
        self.words = collection.words[kept].tolist()
        if not self.words:
            raise HarpError(
                f"no word that is not a stop word occurs {least:g} times in the documents: lower "
                "prop_min_count, or build from more pages"
            )
        self.number = {word: number for number, word in enumerate(self.words)}
        occurrences = collection.occurrences[kept]
        counted = collection.documents[kept] if options.prop_background == "documents" else None
        self.background = _shares(occurrences if counted is None else counted)
        mu = options.number("prop_mu")
        self.mu = occurrences.sum() / max(1, collection.texts) if mu is None else mu
        threshold, shares = options.prop_subsampling or 0.0, _shares(occurrences)
        self.keep = np.sqrt(np.minimum(1.0, threshold / shares)) if threshold else shares * 0 + 1
        self.is_random = options.prop_words == "random"
        self.cumulative = np.cumsum(self.background * self.keep)

    def of(self, text: str) -> DocumentModel:
        """The language model of a document."""
        found = Counter(
            self.number[word] for word in map(str.lower, words(text)) if word in self.number
        )
        numbers = np.array(sorted(found), dtype=np.int64)
        return DocumentModel(self, numbers, np.array([found[n] for n in numbers.tolist()]))


class DocumentModel:
    """P(w|D) of one document (PROP, eq. 3).

    Args:
        whole: the collection's part of it.
        numbers: of the document's distinct words in the vocabulary, ascending.
        counts: of each.
    """

    def __init__(self, whole: LanguageModel, numbers: np.ndarray, counts: np.ndarray) -> None:
        self.whole = whole
        self._counts = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
        self.length = sum(self._counts.values())
        self._numbers, self._cumulative = numbers, np.cumsum(counts * whole.keep[numbers])

    def draw(self, rng: np.random.Generator, size: int) -> np.ndarray | None:
        """Draw words, with replacement.

        Returns:
            Their numbers in the vocabulary, int64 of shape (size,); None where no word can be
            drawn: μ is 0 and the document has none.
        """
        whole, background = self.whole, self.whole.cumulative
        if whole.is_random:
            return rng.integers(len(whole.words), size=size)
        mass = self._cumulative[-1] if self.length else 0.0
        beyond = whole.mu * background[-1]
        if not mass + beyond:
            return None
        place = rng.random(size) * (mass + beyond)
        inside = np.searchsorted(self._cumulative, place, side="right")
        outside = np.searchsorted(background, (place - mass) / (whole.mu or 1.0), side="right")
        last = np.minimum(inside, len(self._numbers) - 1)
        own = self._numbers[last] if self.length else 0
        return np.where(place < mass, own, np.minimum(outside, len(background) - 1))

    def log_likelihood(self, drawn: np.ndarray) -> float:
        """log P(S|D) of drawn words by eq. 2 and 3, Dirichlet smoothing; -inf where it is 0."""
        found = np.array([self._counts.get(number, 0) for number in drawn.tolist()])
        smoothed = found + self.whole.mu * self.whole.background[drawn]
        if not smoothed.all():
            return -np.inf
        return float(np.log(np.sort(smoothed) / (self.length + self.whole.mu)).sum())


def _shares(counts: np.ndarray) -> np.ndarray:
    return counts / max(1, counts.sum())
