"""The document language model of PROP (Ma et al., WSDM 2021) as term weight: no neural model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..text import WORD
from .collection import Words, flat_spans, occurring, words_at
from .tables import LONGEST
from .texts import WeighedTexts
from .tokens import Span, ragged


@dataclass(frozen=True, slots=True)
class FoundTexts:
    """Texts whose words have been found.

    Attributes:
        words: of the texts.
        spans: character offsets of the words, int64 of shape (words, 2).
        word_starts: the first word of each text and the end, shape (texts + 1,).
        anchor_starts: the first anchor of each text and the end, shape (texts + 1,).
        anchors_inside: whether an anchor lies where words are kept, bool of shape (anchors,).
        cut: whether a text has words beyond the last place that is kept, bool of shape (texts,).
    """

    words: Words
    spans: np.ndarray
    word_starts: np.ndarray
    anchor_starts: np.ndarray
    anchors_inside: np.ndarray
    cut: np.ndarray


def find_words(texts: Sequence[str], anchors: Sequence[Sequence[Span]] | None = None) -> FoundTexts:
    """Find the words of texts, as far as they can be stored."""
    found = [[match.span() for match in WORD.finditer(text)] for text in texts]
    kept = [[span for span in spans if span[1] <= LONGEST] for spans in found]
    spans, starts = flat_spans(kept)
    anchor_spans, anchor_starts = flat_spans([()] * len(texts) if anchors is None else anchors)
    return FoundTexts(
        words_at(texts, spans, starts),
        spans,
        starts,
        anchor_starts,
        anchor_spans[:, 1] <= LONGEST,
        np.array([len(a) < len(b) for a, b in zip(kept, found, strict=True)], dtype=bool),
    )


class LanguageModel:
    """Weighs words by P(w|D) with Dirichlet smoothing (PROP, eq. 3).

    A document D of |D| words holds w tf times; P(w|D) = (tf + μ P(w|C)) / (|D| + μ). The weight of
    each of the tf places is P(w|D) / tf, so that repeats sum up to P(w|D); the weights of a text
    are then scaled to a sum of 1, so that float16 holds them, which no draw by plain normalisation
    notices. A sentence is a document of its own. An anchor has no row of its own: its row is its
    sentence's weights. All words count, stop words too: these are left out when words are drawn
    (the authors' code leaves them out before it counts). Which words are too rare or too frequent
    to be sampled is for the task to say that samples from the whole vocabulary.

    Args:
        mu: μ.
        background: gives P(w|C) of words, lower-cased.
    """

    heads = 1

    def __init__(self, mu: float, background: Callable[[Sequence[str]], np.ndarray]) -> None:
        self.mu = mu
        self.background = background

    def weigh(
        self, texts: Sequence[str], anchors: Sequence[Sequence[Span]] | None = None
    ) -> WeighedTexts:
        """Weigh texts, as `harp_plugin.weights.attention.AttentionWeigher.weigh` does."""
        return self.weigh_tokenised(self.tokenise(texts, anchors))

    def tokenise(
        self, texts: Sequence[str], anchors: Sequence[Sequence[Span]] | None = None
    ) -> FoundTexts:
        """Find the words of texts."""
        return find_words(texts, anchors)

    def weigh_tokenised(self, texts: FoundTexts) -> WeighedTexts:
        """Weigh texts whose words were found ahead, by `tokenise`."""
        weights = self._weights(texts).astype(np.float32)
        counts = np.diff(texts.word_starts)
        text = np.repeat(np.arange(len(counts)), np.diff(texts.anchor_starts))
        widths = counts[text]
        return WeighedTexts(
            texts.spans,
            texts.word_starts,
            weights,
            texts.anchor_starts,
            np.concatenate([[0], np.cumsum(widths)]).astype(np.int64),
            weights[ragged(texts.word_starts[text], widths)],
            texts.cut,
            texts.anchors_inside.astype(np.int64),
        )

    def _weights(self, texts: FoundTexts) -> np.ndarray:
        terms = occurring(texts.words)
        lengths = np.diff(texts.word_starts)
        background = self.background(texts.words.vocabulary)[terms.number]
        smoothed = terms.frequency + self.mu * background
        probability = smoothed / (lengths[terms.text] + self.mu)
        total = np.bincount(terms.text, probability, minlength=len(lengths))
        weights = (probability / total[terms.text] / terms.frequency)[terms.term]
        # A word that stands in the text never becomes impossible, whatever μ is.
        return np.maximum(weights, np.finfo(np.float16).smallest_subnormal)
