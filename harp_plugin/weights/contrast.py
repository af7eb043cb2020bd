"""The contrastive attention of B-PROP (Ma et al., SIGIR 2021) as term weight."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .attention import AttentionWeigher
from .collection import Occurring, Words, occurring, words_at
from .texts import WeighedTexts
from .tokens import Span, TokenisedTexts, ragged


class TermDistributions(NamedTuple):
    """Distributions over the distinct words of texts.

    Attributes:
        terms: the distinct words of each text.
        attention: to each, summed over its places; float64 of shape (terms,).
        saturated: ``attention / (attention + k)``, of shape (terms,).
        probability: ``saturated``, normalised to a sum of 1 for each text; of shape (terms,).
    """

    terms: Occurring
    attention: np.ndarray
    saturated: np.ndarray
    probability: np.ndarray


def term_distributions(attention: np.ndarray, words: Words, saturation: float) -> TermDistributions:
    """Distributions of texts by attention to their words.

    Args:
        attention: to each place, of shape (positions,).
        words: at these places.
        saturation: k, above 0.
    """
    terms = occurring(words)
    summed = np.bincount(terms.term, attention, minlength=len(terms.text))
    saturated = summed / (summed + saturation)
    total = np.bincount(terms.text, saturated)[terms.text]
    probability = np.divide(saturated, total, out=np.zeros(len(total)), where=total != 0)
    return TermDistributions(terms, summed, saturated, probability)


class Contrast:
    """Weighs words by the divergence of attention to them from what the collection expects.

    The attention a of [CLS], summed over equal words, is saturated to a / (a + k) and normalised:
    P(w|D). The random distribution P(w|R) is the expectation of P(w|D) over the collection. The
    weight of w is -P(w|D) log2 P(w|R), shared among its places by their attention, so that repeats
    sum up to it. From these weights B-PROP draws by a softmax of temperature 1.

    This follows the authors' released code (github.com/Albert-Ma/PROP, folder bprop, k = 0.01, its
    default method ``entropy``) and its description; the paper's own equations could not be
    consulted. Four things differ. Special tokens are no words here; there [CLS] and [SEP] are part
    of both distributions. A word's attention is the sum over its wordpieces; there the first's.
    The expectation is over normalised distributions, as the description says; there over saturated
    attention, normalised afterwards (``random_distribution="pooled"``). A word that the collection
    lacks, which there would get a negative weight, counts as its rarest.

    B-PROP weighs documents only. Here a sentence is contrasted the same way with the same random
    distribution, and so is the attention of an anchor to the words of its sentence.

    Args:
        attention: weighs by attention.
        saturation: k.
        surprise: gives -log2 P(w|R) of words, lower-cased.
    """

    def __init__(
        self,
        attention: AttentionWeigher,
        saturation: float,
        surprise: Callable[[Sequence[str]], np.ndarray],
    ) -> None:
        self.attention = attention
        self.saturation = saturation
        self.surprise = surprise
        self.heads = attention.heads

    def tokenise(
        self, texts: Sequence[str], anchors: Sequence[Sequence[Span]] | None = None
    ) -> tuple[TokenisedTexts, Words]:
        """Tokenise texts."""
        tokens = self.attention.tokenise(texts, anchors)
        return tokens, words_at(texts, tokens.spans, tokens.word_starts)

    def weigh_tokenised(self, texts: tuple[TokenisedTexts, Words]) -> WeighedTexts:
        """Weigh texts that were tokenised ahead, by `tokenise`."""
        tokens, words = texts
        return self.contrast(self.attention.weigh_tokenised(tokens), words)

    def contrast(self, weighed: WeighedTexts, words: Words) -> WeighedTexts:
        """Contrast attention with the collection.

        Args:
            weighed: texts weighed by attention.
            words: of these texts.
        """
        surprise = self.surprise(words.vocabulary)
        text = np.repeat(np.arange(len(weighed)), np.diff(weighed.anchor_starts))
        widths = np.diff(weighed.row_starts)
        number = words.number[ragged(weighed.word_starts[text], widths)]
        of_anchors = Words(words.vocabulary, number, np.repeat(np.arange(len(text)), widths))
        return replace(
            weighed,
            cls=self._contrasted(weighed.cls, words, surprise),
            rows=self._contrasted(weighed.rows, of_anchors, surprise),
        )

    def _contrasted(self, attention: np.ndarray, words: Words, surprise: np.ndarray) -> np.ndarray:
        found = term_distributions(attention, words, self.saturation)
        weights = found.probability * surprise[found.terms.number]
        zero = found.attention == 0
        each = np.where(zero, 0.0, weights / np.where(zero, 1.0, found.attention))
        return (attention * each[found.terms.term]).astype(np.float32)
