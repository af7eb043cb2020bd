"""How well a query and its document match, without reading: words, places, BM25, the cosine."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

from .measurements import AuditedGroups, Measurement, accuracy_by
from .observations import Observation, vocabulary, word_list

__all__ = [
    "earlier_word",
    "higher_bm25",
    "higher_cosine",
    "higher_shared_share",
    "higher_term_frequency",
    "more_shared_words",
]


def more_shared_words(groups: AuditedGroups) -> Measurement | None:
    """How often the positive's query and document share more distinct words, stop words aside."""

    def shared_words(observation: Observation) -> list[float]:
        return [
            len((vocabulary(pair.query) & vocabulary(pair.document)) - observation.stopped)
            for pair in observation.group.members
        ]

    return accuracy_by(groups, "either", shared_words)


def higher_shared_share(groups: AuditedGroups) -> Measurement | None:
    """How often the positive's document holds a higher share of its query's distinct words.

    Stop words are left out. Where all queries are equal this is `more_shared_words` again, and not
    measured.
    """

    def shared_share(observation: Observation) -> list[float]:
        shares = []
        for pair in observation.group.members:
            query = vocabulary(pair.query) - observation.stopped
            shares.append(len(query & vocabulary(pair.document)) / max(1, len(query)))
        return shares

    return accuracy_by(groups, "query", shared_share)


def higher_term_frequency(groups: AuditedGroups) -> Measurement | None:
    """How often the distinct words of the positive's query occur more often in its document.

    The occurrences of all words are added up; stop words are left out.
    """

    def occurrences(observation: Observation) -> list[int]:
        totals = []
        for pair in observation.group.members:
            counts = Counter(word_list(pair.document))
            query = vocabulary(pair.query) - observation.stopped
            totals.append(sum(counts[word] for word in query))
        return totals

    return accuracy_by(groups, "either", occurrences)


def earlier_word(groups: AuditedGroups) -> Measurement | None:
    """How often a word of the positive's query stands earlier in its document.

    Places are counted in words; stop words of the query are left out. A document without any word
    of its query comes last.
    """

    def closeness_to_start(observation: Observation) -> list[float]:
        places = []
        for pair in observation.group.members:
            query = vocabulary(pair.query) - observation.stopped
            found = (place for place, word in enumerate(word_list(pair.document)) if word in query)
            places.append(-float(next(found, math.inf)))
        return places

    return accuracy_by(groups, "either", closeness_to_start)


def higher_bm25(groups: AuditedGroups) -> Measurement | None:
    """How often the positive has the higher BM25 score, by the words of the build's documents."""
    if groups.bm25 is None:
        return None
    return accuracy_by(groups, "either", _each_pair(groups.bm25.score))


def higher_cosine(groups: AuditedGroups) -> Measurement | None:
    """How often the positive's texts have the higher cosine, by the encoder without training."""
    if groups.encoder is None:
        return None
    pairs = [pair for observation in groups.observations for pair in observation.group.members]
    groups.encoder.embed([text for pair in pairs for text in (pair.query, pair.document)])
    return accuracy_by(groups, "either", _each_pair(groups.encoder.cosine))


def _each_pair(score: Callable[[str, str], float]) -> Callable[[Observation], list[float]]:
    """Score the members of a group by a function of a query and a document."""
    return lambda observation: [
        score(pair.query, pair.document) for pair in observation.group.members
    ]
