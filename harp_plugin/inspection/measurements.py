"""What the checks measure in the groups of a task, as shares from 0 to 1."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from ..graph.functional import FUNCTIONAL_ANCHORS
from ..tasks import Pair, PairGroup
from ..text import words
from .bm25 import BM25
from .observations import Observation, page_unit
from .text_encoder import TextEncoder

__all__ = [
    "AuditedGroups",
    "Measurement",
    "Scores",
    "Side",
    "accuracy",
    "accuracy_by",
    "boilerplate",
    "commoner_target",
    "documents_differ",
    "first_capital",
    "first_in_order",
    "frequent_pages",
    "functional_anchors",
    "layers_disagree",
    "longer_document",
    "longer_query",
    "more_capitals",
    "more_in_links",
    "negative_is_positive",
    "negative_linked",
    "pages_seen",
    "repeated_groups",
    "repeated_pairs",
    "sides_differ",
    "title_in_query",
    "word_count",
]

Side: TypeAlias = Literal["query", "document", "either"]
Scores: TypeAlias = Sequence[float | None]
"""A score for each member of a group, the positive's first; None where a member has none."""
_Z = 1.959963984540054
"""Quantile of the standard normal distribution for an interval of 95 %."""


@dataclass(frozen=True, slots=True)
class AuditedGroups:
    """The groups of a task that are audited.

    Attributes:
        task: name of the task.
        observations: one for each group.
        documents: number of pages of the build that may be a document.
        seed: of the random split that a learnt check makes.
        bm25: knows the words of the build's documents; None where nobody counted them.
        encoder: makes vectors of texts; None where there is no model.
        more_groups: draws groups of the task that are not audited, from which a check may learn.
        query_units: gives what keeps the pages apart that the queries of a group are about.
        page_unit: gives what keeps the page of a pair's document apart from others.
    """

    task: str
    observations: list[Observation]
    documents: int
    seed: int
    bm25: BM25 | None = None
    encoder: TextEncoder | None = None
    more_groups: Callable[[], Iterator[PairGroup]] = lambda: iter(())
    query_units: Callable[[PairGroup], set[int]] = lambda _: set()
    page_unit: Callable[[Pair], int] = page_unit


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a check measures.

    Attributes:
        value: share of groups, pairs or pages; an accuracy is the share of pairs whose positive is
            told from the negative, where a tie counts one half.
        judged: the number that the limits apply to, where it is not the value.
        negatives: the same share of the negatives, where positives and negatives are compared.
        interval: 95 % Wilson interval of an accuracy; the pairs of one group count as one trial.
        groups: number of groups behind an accuracy.
        pairs: number of pairs of a positive and a negative behind an accuracy.
        decided: share of these pairs that are not tied.
    """

    value: float
    judged: float | None = None
    negatives: float | None = None
    interval: tuple[float, float] | None = None
    groups: int | None = None
    pairs: int | None = None
    decided: float | None = None


@lru_cache(maxsize=1 << 12)
def word_count(text: str) -> int:
    """Number of words in a text."""
    return len(words(text))


def sides_differ(observation: Observation, side: Side) -> bool:
    """Whether the members of a group have different texts on a side."""
    members = observation.group.members
    texts = members if side == "either" else [getattr(pair, side) for pair in members]
    return len(set(texts)) > 1


def documents_differ(groups: AuditedGroups) -> bool:
    """Whether the documents of a group differ in any group."""
    return any(sides_differ(observation, "document") for observation in groups.observations)


def accuracy(groups: Iterable[Scores]) -> Measurement | None:
    """How often the positive has a higher score than a negative.

    Args:
        groups: the scores of each group. Pairs in which a member has no score are left out.

    Returns:
        None where no pair is left.
    """
    compared = [
        [(positive, negative) for negative in negatives if negative is not None]
        for positive, *negatives in groups
        if positive is not None
    ]
    trials = sum(bool(pairs) for pairs in compared)
    if not trials:
        return None
    pairs = [pair for group in compared for pair in group]
    right = sum(positive > negative for positive, negative in pairs)
    wrong = sum(positive < negative for positive, negative in pairs)
    share = 0.5 + (right - wrong) / (2 * len(pairs))
    return Measurement(
        share,
        interval=_wilson_interval(share, trials),
        groups=trials,
        pairs=len(pairs),
        decided=(right + wrong) / len(pairs),
    )


def _wilson_interval(share: float, trials: int) -> tuple[float, float]:
    """95 % interval of a share; ties make half counts, which the one of scipy does not take."""
    square = _Z * _Z / trials
    center = (share + square / 2) / (1 + square)
    half = _Z / (1 + square) * math.sqrt(share * (1 - share) / trials + square / (4 * trials))
    return max(0.0, center - half), min(1.0, center + half)


def accuracy_by(
    groups: AuditedGroups, side: Side, scores: Callable[[Observation], Scores]
) -> Measurement | None:
    """Measure how often the positive has the higher score.

    Args:
        groups: the groups.
        side: the side of a pair that the score reads.
        scores: gives the scores of a group's members.

    Returns:
        None where the members of every group are equal on that side.
    """
    if not any(sides_differ(observation, side) for observation in groups.observations):
        return None
    return accuracy(map(scores, groups.observations))


def longer_query(groups: AuditedGroups) -> Measurement | None:
    """How often the positive's query has more words."""
    return accuracy_by(
        groups,
        "query",
        lambda observation: [word_count(pair.query) for pair in observation.group.members],
    )


def more_capitals(groups: AuditedGroups) -> Measurement | None:
    """How often a higher share of the letters of the positive's query are capitals."""
    return accuracy_by(
        groups,
        "query",
        lambda observation: [_share_of_capitals(pair.query) for pair in observation.group.members],
    )


def _share_of_capitals(text: str) -> float:
    letters = [character for character in text if character.isalpha()]
    return sum(map(str.isupper, letters)) / max(1, len(letters))


def first_capital(groups: AuditedGroups) -> Measurement | None:
    """How often the positive's query begins with a capital and the negative's does not."""
    return accuracy_by(
        groups,
        "query",
        lambda observation: [pair.query[:1].isupper() for pair in observation.group.members],
    )


def longer_document(groups: AuditedGroups) -> Measurement | None:
    """How often the positive's document has more words."""
    return accuracy_by(
        groups,
        "document",
        lambda observation: [word_count(pair.document) for pair in observation.group.members],
    )


def first_in_order(groups: AuditedGroups) -> Measurement | None:
    """How often the positive's document comes first in the text that the documents come from."""

    def closeness_to_start(observation: Observation) -> Scores:
        if not sides_differ(observation, "document"):
            return [None] * len(observation.places)
        return [None if place is None else -place for place in observation.places]

    return accuracy_by(groups, "document", closeness_to_start)


def more_in_links(groups: AuditedGroups) -> Measurement | None:
    """How often more anchors of the build lead to the positive's page."""
    return accuracy_by(groups, "document", lambda observation: list(observation.in_links))


def commoner_target(groups: AuditedGroups) -> Measurement | None:
    """How often the text of the query's anchor leads to the positive's page more often."""
    return accuracy_by(groups, "document", lambda observation: list(observation.occurrences))


def repeated_groups(groups: AuditedGroups) -> Measurement:
    """Share of the groups that repeat an earlier group."""
    return _share_repeated(observation.group.members for observation in groups.observations)


def repeated_pairs(groups: AuditedGroups) -> Measurement:
    """Share of the pairs that repeat a pair of an earlier group."""
    return _share_repeated(
        pair
        for observation in groups.observations
        for pair in dict.fromkeys(observation.group.members)
    )


def _share_repeated(items: Iterable[Hashable]) -> Measurement:
    counts = Counter(items)
    return Measurement(1 - len(counts) / counts.total())


def negative_is_positive(groups: AuditedGroups) -> Measurement | None:
    """Share of the groups that have their positive among their negatives."""
    return _share(
        observation.group.positive in observation.group.negatives
        for observation in groups.observations
    )


def negative_linked(groups: AuditedGroups) -> Measurement | None:
    """Share of the negatives on other pages to which the sentence of the positive links too."""
    return _share(
        is_linked
        for observation in groups.observations
        if observation.linked is not None
        for page, is_linked in zip(observation.pages[1:], observation.linked[1:], strict=True)
        if page is not None and page != observation.pages[0]
    )


def functional_anchors(groups: AuditedGroups) -> Measurement | None:
    """Share of the groups that are made of an anchor such as “here”."""
    return _share(
        any(anchor in FUNCTIONAL_ANCHORS for anchor in observation.anchors)
        for observation in groups.observations
        if observation.anchors
    )


def _share(answers: Iterable[bool]) -> Measurement | None:
    counts = Counter(answers)
    return Measurement(counts[True] / counts.total()) if counts else None


def boilerplate(groups: AuditedGroups) -> Measurement | None:
    """Share of the documents that are lists of references or links, or begin with a hatnote."""
    return _share(
        is_boilerplate
        for observation in groups.observations
        for is_boilerplate in observation.boilerplate
        if is_boilerplate is not None
    )


def layers_disagree(groups: AuditedGroups) -> Measurement | None:
    """Share of RDP's groups whose order the layer before the last does not confirm."""
    return _share(
        not observation.layers_agree
        for observation in groups.observations
        if observation.layers_agree is not None
    )


def title_in_query(groups: AuditedGroups) -> Measurement | None:
    """How often a query holds the title of its document's page; judged is the positives' excess.

    It is measured for tasks that are made of anchors.
    """
    if not any(observation.anchors for observation in groups.observations):
        return None
    positives: list[bool] = []
    negatives: list[bool] = []
    for observation in groups.observations:
        for number, (pair, title) in enumerate(
            zip(observation.group.members, observation.titles, strict=True)
        ):
            if title is not None:
                (negatives if number else positives).append(_holds_title(pair.query, title))
    if not positives:
        return None
    share = sum(positives) / len(positives)
    others = sum(negatives) / len(negatives) if negatives else 0.0
    return Measurement(share, judged=share - others, negatives=others)


def _holds_title(text: str, title: str) -> bool:
    """Whether the words of a title stand in a text, in order and one after the other."""
    text_words, title_words = words(text.lower()), words(title.lower())
    last = len(text_words) - len(title_words)
    starts = range(last + 1) if title_words else ()
    return any(text_words[start : start + len(title_words)] == title_words for start in starts)


def pages_seen(groups: AuditedGroups) -> Measurement | None:
    """Share of the pages that are seen as a document.

    Judged is the share that is missing of the pages that as many even draws would show.
    """
    pages = [
        page
        for observation in groups.observations
        for page in set(observation.pages)
        if page is not None
    ]
    if not pages or not groups.documents:
        return None
    distinct = len(set(pages))
    by_even_draws = groups.documents * (1 - (1 - 1 / groups.documents) ** len(pages))
    return Measurement(
        min(1.0, distinct / groups.documents), judged=max(0.0, 1 - distinct / by_even_draws)
    )


def frequent_pages(groups: AuditedGroups) -> Measurement | None:
    """Share of the positives that the most frequent 1 % of their pages have."""
    pages = Counter(
        observation.pages[0]
        for observation in groups.observations
        if observation.pages[0] is not None
    )
    if not pages or not groups.documents:
        return None
    most = pages.most_common(max(1, len(pages) // 100))
    return Measurement(sum(count for _, count in most) / pages.total())
