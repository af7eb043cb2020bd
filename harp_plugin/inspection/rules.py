"""Rules that tell positives from negatives without reading: how often they are right."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .observations import Observation, pairwise, size, vocabulary

_Z = 1.959963984540054
"""Of the standard normal distribution, for 95 %."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How often a rule is right.

    Attributes:
        groups: in which it was asked.
        pairs: of a positive and a negative that it was asked about.
        decided: of these pairs, those that it does not tie.
        accuracy: share of the pairs that it gets right; a tie counts one half.
    """

    groups: int
    pairs: int
    decided: int
    accuracy: float

    @property
    def decided_share(self) -> float:
        """Share of the pairs that it does not tie."""
        return self.decided / self.pairs

    @property
    def interval(self) -> tuple[float, float]:
        """95 % Wilson interval of the accuracy; pairs of one group count as one trial."""
        n, p = self.groups, self.accuracy
        centre = (p + _Z * _Z / (2 * n)) / (1 + _Z * _Z / n)
        half = _Z / (1 + _Z * _Z / n) * math.sqrt(p * (1 - p) / n + _Z * _Z / (4 * n * n))
        return max(0.0, centre - half), min(1.0, centre + half)


def tally(groups: Iterable[list[tuple[float, float]]]) -> Outcome | None:
    """Count, over groups of (positive's score, negative's score); None where there is no pair."""
    asked = [group for group in groups if group]
    pairs = [pair for group in asked for pair in group]
    if not pairs:
        return None
    right = sum(positive > negative for positive, negative in pairs)
    wrong = sum(positive < negative for positive, negative in pairs)
    accuracy = 0.5 + (right - wrong) / (2 * len(pairs))
    return Outcome(len(asked), len(pairs), right + wrong, accuracy)


def differ(observation: Observation, side: str) -> bool:
    """Whether the members' texts on a side (``query``, ``document`` or ``either``) differ."""
    members = observation.group.members
    texts = members if side == "either" else [getattr(pair, side) for pair in members]
    return len(set(texts)) > 1


@dataclass(frozen=True, slots=True)
class Rule:
    """The member with the highest score is taken for the positive.

    Attributes:
        name: in `audit.json`.
        label: for people.
        side: of the pair that it looks at; where all members are equal there, it says nothing.
        score: of each member; None where it has none.
    """

    name: str
    label: str
    side: str
    score: Callable[[Observation], list[float | None]]

    def ask(self, observations: list[Observation]) -> Outcome | None:
        """How often it is right; None where it says nothing on this task."""
        if not any(differ(observation, self.side) for observation in observations):
            return None
        return tally(pairwise(observations, self.score))


def _longer_query(observation: Observation) -> list[float | None]:
    return [size(pair.query) for pair in observation.group.members]


def _longer_document(observation: Observation) -> list[float | None]:
    return [size(pair.document) for pair in observation.group.members]


def _shared_words(observation: Observation) -> list[float | None]:
    return [
        len((vocabulary(pair.query) & vocabulary(pair.document)) - observation.stopped)
        for pair in observation.group.members
    ]


def _shared_share(observation: Observation) -> list[float | None]:
    """The share of a query's distinct words, stop words left out, that its document holds.

    Where all queries are equal it is `_shared_words` again.
    """
    shares: list[float | None] = []
    for pair in observation.group.members:
        query = vocabulary(pair.query) - observation.stopped
        shares.append(len(query & vocabulary(pair.document)) / max(1, len(query)))
    return shares


def _first(observation: Observation) -> list[float | None]:
    if not differ(observation, "document"):
        return [None] * len(observation.places)
    return [None if place is None else -place for place in observation.places]


RULES = (
    Rule("longer_query", "longer query", "query", _longer_query),
    Rule("longer_document", "longer document", "document", _longer_document),
    Rule("more_shared_words", "more words shared", "either", _shared_words),
    Rule("higher_shared_share", "higher share of query shared", "query", _shared_share),
    Rule("first_in_order", "first in reading order", "document", _first),
)
"""Rules that need no training."""
