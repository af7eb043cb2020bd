"""Anchor Co-occurrence Modeling (HARP, section 3.2.4, eq. 13 and 14)."""

from __future__ import annotations

import numpy as np

from .base import sentences_of_several_pages
from .groups import PairGroup
from .options import DrawOptions
from .passages import draw_page
from .queries import Query, anchored_query, page_pair, sample_words
from .source import Anchor, BuildSource
from .terms import draw_length

__all__ = ["ACM"]


class ACM:
    """Words of one page that a sentence links to go with another that it links to."""

    @staticmethod
    def examples(graph):
        """Select the sentences that link to two pages or more."""
        return sentences_of_several_pages(graph)

    def draw(
        self, example: int, rng: np.random.Generator, source: BuildSource, options: DrawOptions
    ) -> PairGroup | None:
        """Draw an ordered pair of anchors, S1 from the first's page, and a page of the corpus."""
        anchors = source.sentence_anchors(example)
        first = anchors[int(rng.integers(len(anchors)))]
        others = [anchor for anchor in anchors if anchor.page != first.page]
        second = others[int(rng.integers(len(others)))]
        query = _page_query(first, rng, source, options)
        excluded = {
            "not_linked": {anchor.page for anchor in anchors},
            "any_but_pair": {first.page, second.page},
        }.get(options.acm_negative_page or "", {second.page})
        page = draw_page(rng, source.documents, excluded)
        if query is None or page is None:
            return None
        negative_query = query
        if options.acm_negative_query == "redrawn":
            negative_query = _page_query(first, rng, source, options) or query
        positive = page_pair(query, second.page, source, options.document_fields)
        negative = page_pair(negative_query, page, source, options.document_fields)
        return PairGroup("acm", positive, (negative,))


def _page_query(
    anchor: Anchor, rng: np.random.Generator, source: BuildSource, options: DrawOptions
) -> Query | None:
    """Draw S1: the anchor and words of the page that it leads to (eq. 13)."""
    size = draw_length(rng, options)
    terms = source.page_terms(anchor.page, options)
    sampled = sample_words(rng, terms, size, source, options, page=anchor.page)
    return anchored_query(anchor, sampled, source, options) if sampled else None
