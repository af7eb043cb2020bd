"""S2, the query of RQP that suits the linked page worse than S1: three ways to draw it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from ..sampling import zero_truncated_poisson
from ..text import WORD, words
from .groups import QueryOrigin, SampledWord
from .options import DrawOptions
from .passages import draw_item, draw_items
from .queries import Draw, Query
from .source import Anchor, BuildSource
from .terms import stop_words, without

__all__ = ["mirrored_query", "other_anchor_query", "page_query"]

_TRIES = 20
_TRIES_OF_ANCHORS = 10


def page_query(query: Query, anchor: Anchor, draw: Draw) -> Query | None:
    """Draw S2 from the words of the page that the anchor leads to (eq. 5)."""
    rng, source, options = draw
    is_equal = options.negative_query_length == "equal"
    size = len(words(query.text)) if is_equal else zero_truncated_poisson(rng)
    anchor_words = words(source.anchor_text(anchor))
    terms = source.page_terms(anchor.page, options)
    terms = without(terms, anchor_words, options.anchor_words_in_negative)
    sampled = draw.words(terms, size, page=anchor.page)
    return Query(" ".join(s.word for s in sampled), QueryOrigin(anchor.page, sampled=sampled))


def other_anchor_query(query: Query, anchor: Anchor, draw: Draw) -> Query | None:
    """Draw S2 as S1 of another anchor, one that stands on the anchor's page P and leads elsewhere.

    S2 is natural text of P's own vocabulary, but about another page. Where no such anchor stands on
    P, one is drawn that stands near P: on a page that links to a neighbor of P. Of up to twenty
    anchors, those with as many words as the anchor of S1 come first, so that the length of a query
    tells nothing.

    Args:
        query: S1.
        anchor: the anchor of S1.
        draw: what S1 was drawn with.

    Returns:
        S2, with as many drawn words as S1, or None where no anchor gives it.
    """
    rng, source, options = draw
    size = len(query.origin.sampled)
    length = _length(anchor, source)
    find: Callable[..., Iterator[int]]
    for find in (_anchors_on, _anchors_near):
        others = [source.anchor(id) for id in find(rng, anchor.page, source)]
        for other in sorted(others, key=lambda each: abs(_length(each, source) - length)):
            if _leads_elsewhere(other, anchor.page, source, options):
                drawn = draw.context_query(other, size=size)
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
    """Return whether no anchor of the text or sentence leads to a page or one of its title."""
    return (
        not source.are_alike(other.page, page, options)
        and page not in source.pages_linked_by(other.sentence)
        and page not in source.text_targets(other.text_id)
    )


def _length(anchor: Anchor, source: BuildSource) -> int:
    return len(words(source.anchor_text(anchor)))


def mirrored_query(query: Query, anchor: Anchor, draw: Draw) -> Query | None:
    """Draw S2 of RQP in the shape of S1: each word becomes another one of its kind.

    A word that the lead of the anchor's page holds becomes one drawn from the lead (eq. 5); one
    that it does not hold becomes one drawn from the sentence of a random anchor, which the lead
    does not hold either. Equal words become equal words, stop words stay. With words of the page
    alone, as in the paper, "the query that shares fewer words with the document is the positive"
    is hardly ever wrong.

    Args:
        query: S1.
        anchor: the anchor of S1.
        draw: what S1 was drawn with.

    Returns:
        S2, or None where there are too few words.
    """
    page, (rng, source, options) = anchor.page, draw
    in_lead = set(map(str.lower, words(source.lead(page))))
    stopped = stop_words(options.stop_words)
    text = query.text
    own = list(dict.fromkeys(w for w in map(str.lower, words(text)) if w not in stopped))
    held = [word for word in own if word in in_lead]
    unheld = [word for word in own if word not in in_lead]
    terms = without(source.page_terms(page, options), own, "removed")
    sampled = draw.words(terms, len(held), page=page, replacement=False)
    replaced_by: dict[str, SampledWord] = dict(zip(held, sampled, strict=False))
    ids = source.examples["rqp"].ids
    for _ in range(_TRIES_OF_ANCHORS):
        missing = [word for word in unheld if word not in replaced_by]
        if not missing:
            break
        other = source.anchor(int(ids[rng.integers(len(ids))]))
        if source.has_weights(other.id):
            taken = [*own, *in_lead, *(word.word for word in replaced_by.values())]
            terms = without(source.sentence_terms(other, options), taken, "removed")
            sampled = draw.words(terms, len(missing), anchor=other.id, replacement=False)
            replaced_by |= dict(zip(missing, sampled, strict=False))
    if len(replaced_by) < len(own):
        return None

    def mirrored(word: str) -> str:
        return replaced_by[word.lower()].word if word.lower() in replaced_by else word

    drawn = (replaced_by.get(word.lower()) for word in words(text))
    origin = QueryOrigin(sampled=tuple(word for word in drawn if word is not None))
    return Query(WORD.sub(lambda match: mirrored(match[0]), text), origin)
