"""Negative queries of RQP about the page that the anchor leads to."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..text import words
from .groups import QueryOrigin
from .options import DrawOptions
from .passages import draw_item, draw_items
from .queries import Query, context_query, sample_words
from .source import Anchor, BuildSource
from .terms import draw_length, without

__all__ = ["other_anchor_query", "page_query"]

_TRIES = 20


def page_query(
    query: Query,
    anchor: Anchor,
    rng: np.random.Generator,
    source: BuildSource,
    options: DrawOptions,
) -> Query | None:
    """Draw S2 from the words of the page that the anchor leads to (eq. 5)."""
    if options.negative_query_length == "equal":
        size = len(words(query.text))
    else:
        size = draw_length(rng, options)
        if options.negative_query_length == "drawn_above_one" and size <= 1:
            return None
    anchor_words = words(source.anchor_text(anchor))
    terms = source.page_terms(anchor.page, options)
    terms = without(terms, anchor_words, options.anchor_words_in_negative)
    sampled = sample_words(rng, terms, size, source, options, page=anchor.page)
    return Query(" ".join(s.word for s in sampled), QueryOrigin(anchor.page, sampled=sampled))


def other_anchor_query(
    query: Query,
    anchor: Anchor,
    rng: np.random.Generator,
    source: BuildSource,
    options: DrawOptions,
) -> Query | None:
    """Draw S2 as S1 of another anchor, one that stands on the anchor's page P and leads elsewhere.

    S2 is natural text of P's own vocabulary, but about another page. Where no such anchor stands on
    P, one is drawn that stands near P: on a page that links to a neighbor of P. Of up to twenty
    anchors, those with as many words as the anchor of S1 come first, so that the length of a query
    tells nothing.

    Args:
        query: S1.
        anchor: the anchor of S1.
        rng: source of randomness.
        source: the build.
        options: how words are drawn.

    Returns:
        S2, with as many drawn words as S1, or None where no anchor gives it.
    """
    size = len(query.origin.sampled)
    length = _length(anchor, source)
    find: Callable[..., Iterator[int]]
    for find in (_anchors_on, _anchors_near):
        others = [source.anchor(id) for id in find(rng, anchor.page, source)]
        for other in sorted(others, key=lambda each: abs(_length(each, source) - length)):
            if _leads_elsewhere(other, anchor.page, source, options):
                drawn = context_query(other, rng, source, options, size=size)
                if drawn is not None and len(drawn.origin.sampled) == size:
                    return drawn
    return None


def _anchors_on(rng: np.random.Generator, page: int, source: BuildSource) -> Iterator[int]:
    yield from draw_items(rng, source.page_links(page).anchors.tolist(), _TRIES)


def _anchors_near(rng: np.random.Generator, page: int, source: BuildSource) -> Iterator[int]:
    links = source.page_links(page)
    neighbors = np.union1d(links.sources, links.targets).tolist()
    for _ in range(_TRIES if neighbors else 0):
        linking = source.page_links(draw_item(rng, neighbors)).sources.tolist()
        anchors = source.page_links(draw_item(rng, linking)).anchors.tolist() if linking else []
        if anchors:
            yield draw_item(rng, anchors)


def _leads_elsewhere(other: Anchor, page: int, source: BuildSource, options: DrawOptions) -> bool:
    """Tell whether neither an anchor nor its text nor its sentence leads to a page or its like."""
    return (
        not source.are_alike(other.page, page, options)
        and page not in source.pages_linked_by(other.sentence)
        and page not in source.text_targets(other.text_id)
    )


def _length(anchor: Anchor, source: BuildSource) -> int:
    return len(words(source.anchor_text(anchor)))
