"""The contrastive attention of B-PROP (Ma et al., SIGIR 2021) as term weight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .attention import AttentionWeigher
from .tokens import TokenizedTexts
from .weighed_texts import WeighedTexts
from .words import DistinctWords, Span, find_distinct_words

__all__ = ["Contrast", "attention_to_words", "saturated", "shares_in_texts"]


def attention_to_words(attention: np.ndarray, words: DistinctWords) -> np.ndarray:
    """Sum attention over the repeats of each word.

    Args:
        attention: to each occurrence of a word, of shape (words,).
        words: the words that occur there.

    Returns:
        float64 of shape (distinct,).
    """
    return np.bincount(words.at, attention, minlength=len(words.text))


def saturated(attention: np.ndarray, saturation: float) -> np.ndarray:
    """Return ``attention / (attention + k)``; k, the saturation, is above 0."""
    return attention / (attention + saturation)


def shares_in_texts(values: np.ndarray, words: DistinctWords) -> np.ndarray:
    """Normalize values of distinct words to a sum of 1 for each text; 0 where all are 0."""
    total = np.bincount(words.text, values)[words.text]
    return np.divide(values, total, out=np.zeros(len(total)), where=total != 0)


@dataclass(frozen=True, eq=False)
class Contrast:
    """Weighs words by the divergence of attention to them from what the collection expects.

    The attention a of [CLS], summed over equal words, is saturated to a / (a + k) and normalized:
    P(w|D). The random distribution P(w|R) is the expectation of P(w|D) over the collection. The
    weight of w is -P(w|D) log2 P(w|R), divided among its occurrences by their attention, so that
    repeats sum up to it. From these weights B-PROP draws by a softmax of temperature 1.

    This follows the authors' released code (github.com/Albert-Ma/PROP, folder bprop, k = 0.01, its
    default method ``entropy``) and its description; the paper's own equations could not be
    consulted. Four things differ. Special tokens are not words here; there [CLS] and [SEP] are part
    of both distributions. A word's attention is the sum over its wordpieces; there the first's.
    The expectation is over normalized distributions, as the description says; there over saturated
    attention, normalized afterwards (``random_distribution="pooled"``). A word that the collection
    lacks, which there would get a negative weight, counts as its rarest.

    B-PROP weighs documents only. Here a sentence is contrasted the same way with the same random
    distribution, and so is the attention of an anchor to the words of its sentence.

    Args:
        attention: the weigher whose attention is contrasted.
        saturation: k.
        surprise: gives -log2 P(w|R) of words, lower-cased.
    """

    attention: AttentionWeigher
    saturation: float
    surprise: Callable[[Sequence[str]], np.ndarray]

    def tokenize(
        self, texts: Sequence[str], anchors: Sequence[Sequence[Span]] | None = None
    ) -> tuple[TokenizedTexts, DistinctWords]:
        """Tokenize texts, and find which of their words are the same."""
        tokens = self.attention.tokenize(texts, anchors)
        return tokens, find_distinct_words(texts, tokens.words)

    def weigh_tokenized(self, texts: tuple[TokenizedTexts, DistinctWords]) -> WeighedTexts:
        """Weigh texts that were tokenized ahead, by `tokenize`."""
        tokens, words = texts
        return self.contrast(self.attention.weigh_tokenized(tokens), words)

    def contrast(self, weighed: WeighedTexts, words: DistinctWords) -> WeighedTexts:
        """Contrast attention with the random distribution of the collection.

        Args:
            weighed: texts weighed by attention.
            words: the words of these texts.
        """
        surprise = self.surprise(words.vocabulary)
        widths = np.diff(weighed.row_starts)
        number = words.number[words.at[weighed.row_words]]
        row = np.repeat(np.arange(len(widths)), widths)
        row_words = DistinctWords.merged(words.vocabulary, number, row)
        return replace(
            weighed,
            cls=self._contrasted(weighed.cls, words, surprise),
            rows=self._contrasted(weighed.rows, row_words, surprise),
        )

    def _contrasted(
        self, attention: np.ndarray, words: DistinctWords, surprise: np.ndarray
    ) -> np.ndarray:
        summed = attention_to_words(attention, words)
        probability = shares_in_texts(saturated(summed, self.saturation), words)
        weights = probability * surprise[words.number]
        zero = summed == 0
        scale = np.where(zero, 0.0, weights / np.where(zero, 1.0, summed))
        return (attention * scale[words.at]).astype(np.float32)
