"""Figures of a task's data beside the rules: repeats, links, anchors, titles, coverage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from typing import NamedTuple

from ..graph.functional import FUNCTIONAL_ANCHORS
from ..text import words
from .observations import Observation


class Figure(NamedTuple):
    """A share, and what its light is judged by.

    Attributes:
        name: in `audit.json`.
        label: for people.
        share: of groups, pairs or pages.
        judged: the number that is held against the limits.
        negatives: the like share of the negatives, where the two are compared.
    """

    name: str
    label: str
    share: float
    judged: float
    negatives: float | None = None


def figures(observations: list[Observation], documents: int) -> Iterator[Figure]:
    """The figures that apply to a task.

    Args:
        observations: of its groups.
        documents: pages of the build that may be a document.
    """
    groups = [each.group for each in observations]
    yield _plain("repeated_groups", "groups seen before", _repeated(g.members for g in groups))
    pairs = _repeated(pair for group in groups for pair in dict.fromkeys(group.members))
    yield _plain("repeated_pairs", "pairs seen before", pairs)
    same = [group.positive in group.negatives for group in groups]
    yield _plain("negative_is_positive", "negative equal to its positive", _share(same))
    if linked := [one for each in observations for one in _linked_negatives(each)]:
        label = "negative linked in the sentence"
        yield _plain("negative_linked", label, _share(linked))
    if functional := [_is_functional(each) for each in observations if each.anchors]:
        yield _plain("functional_anchors", "functional anchor", _share(functional))
        yield from _titles(observations)
    yield from _coverage(observations, documents)


def _plain(name: str, label: str, share: float) -> Figure:
    return Figure(name, label, share, share)


def _share(found: list[bool]) -> float:
    return sum(found) / len(found)


def _repeated(items: Iterable[Hashable]) -> float:
    counts = Counter(items)
    return 1 - len(counts) / counts.total()


def _linked_negatives(observation: Observation) -> Iterator[bool]:
    if observation.linked is not None:
        for page, linked in zip(observation.pages[1:], observation.linked[1:], strict=True):
            if page is not None and page != observation.pages[0]:
                yield linked


def _is_functional(observation: Observation) -> bool:
    return any(anchor in FUNCTIONAL_ANCHORS for anchor in observation.anchors)


def _titles(observations: list[Observation]) -> Iterator[Figure]:
    """How often a query holds the title of its document's page."""
    positives: list[bool] = []
    negatives: list[bool] = []
    for each in observations:
        for number, pair in enumerate(each.group.members):
            if (title := each.titles[number]) is not None:
                (negatives if number else positives).append(holds(pair.query, title))
    if positives:
        share, others = _share(positives), _share(negatives) if negatives else 0.0
        label = "query holds its page's title"
        yield Figure("title_in_query", label, share, share - others, others)


def holds(text: str, title: str) -> bool:
    """Whether the words of a title stand in a text, in order and one after the other."""
    inside, sought = words(text.lower()), words(title.lower())
    last = len(inside) - len(sought)
    places = range(last + 1) if sought else ()
    return any(inside[start : start + len(sought)] == sought for start in places)


def _coverage(observations: list[Observation], documents: int) -> Iterator[Figure]:
    pages = [page for each in observations for page in set(each.pages) if page is not None]
    if not pages or not documents:
        return
    seen = len(set(pages))
    even = documents * (1 - (1 - 1 / documents) ** len(pages))
    missing = max(0.0, 1 - seen / even)
    yield Figure("pages_seen", "pages seen as a document", min(1.0, seen / documents), missing)
    positives = Counter(each.pages[0] for each in observations if each.pages[0] is not None)
    if positives:
        most = positives.most_common(max(1, len(positives) // 100))
        share = sum(count for _, count in most) / positives.total()
        yield _plain("frequent_pages", "positives on 1 % of the pages", share)
