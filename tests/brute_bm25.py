"""BM25 in a loop over all documents, in float64; only the tokens are PISA's."""

from __future__ import annotations

import math
from collections import Counter

from pyterrier_pisa import tokenize
from pyterrier_pisa.stopwords import _STOPWORDS

from harp_plugin.ranking.terms import plain


def terms(text: str) -> list[str]:
    return tokenize(plain(text).replace("\n", " ").replace("\r", " "), "porter2")


class BruteBm25:
    """Scores by the formula that PISA's authors give, with k1 = 0.9 and b = 0.4.

    The score is the sum over distinct query terms of max(1e-6, ln((N - df + ½) / (df + ½))) · (1 +
    k1) · tf / (tf + k1 · (1 - b + b · length / mean length)).
    """

    def __init__(self, documents: dict[int, str], k1: float = 0.9, b: float = 0.4) -> None:
        counts = {id: Counter(terms(text)) for id, text in documents.items()}
        self.counts = counts
        self.frequencies = Counter(term for count in counts.values() for term in count)
        lengths = {id: count.total() for id, count in counts.items()}
        mean = sum(lengths.values()) / len(lengths)
        self.damping = {id: k1 * (1 - b + b * n / mean) for id, n in lengths.items()}
        self.k1 = k1
        stop_words = (terms(word) for word in _STOPWORDS["terrier"])
        # PISA compares a stop word as a whole: of "come-on" neither "come" nor "on" is stopped.
        self.stopped = {words[0] for words in stop_words if len(words) == 1}

    def scores(self, query: str) -> dict[int, float]:
        """The score of every document that has a term of the query."""
        number = len(self.counts)
        scores: Counter[int] = Counter()
        for term in set(terms(query)) - self.stopped:
            df = self.frequencies[term]
            weight = max(1e-6, math.log((number - df + 0.5) / (df + 0.5))) * (1 + self.k1)
            for id, count in self.counts.items():
                if tf := count[term]:
                    scores[id] += weight * tf / (tf + self.damping[id])
        return dict(scores)
