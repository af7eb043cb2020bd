"""Anchor Co-occurrence Modeling (HARP, section 3.2.4, eq. 13 and 14)."""

from __future__ import annotations

import numpy as np

from .base import Anchor, Source, anchored_query, sentences_of_several_pages
from .groups import Pair, PairGroup
from .options import DrawOptions
from .passages import draw_page
from .terms import draw_length, draw_words


class ACM:
    """Words of one page that a sentence links to go with another that it links to."""

    @staticmethod
    def examples(graph):
        """Sentences that link to two pages or more."""
        return sentences_of_several_pages(graph)

    def draw(
        self, example: int, rng: np.random.Generator, source: Source, options: DrawOptions
    ) -> PairGroup | None:
        """Draw an ordered pair of anchors, S1 from the first's page, and a page of the corpus."""
        anchors = source.anchors_of(example)
        first = anchors[int(rng.integers(len(anchors)))]
        others = [anchor for anchor in anchors if anchor.page != first.page]
        second = others[int(rng.integers(len(others)))]
        query = self._query(first, rng, source, options)
        excluded = {
            "not_linked": {anchor.page for anchor in anchors},
            "any_but_pair": {first.page, second.page},
        }.get(options.acm_negative_page or "", {second.page})
        page = draw_page(rng, source.documents, excluded)
        if query is None or page is None:
            return None
        negative = query
        if options.acm_negative_query == "redrawn":
            negative = self._query(first, rng, source, options) or query
        positive = Pair(query, source.document(second.page))
        return PairGroup("acm", positive, (Pair(negative, source.document(page)),))

    @staticmethod
    def _query(
        anchor: Anchor, rng: np.random.Generator, source: Source, options: DrawOptions
    ) -> str | None:
        size = draw_length(rng, options)
        terms = source.page_terms(anchor.page, options)
        sampled = draw_words(rng, terms, size, options, source.heads)
        return anchored_query(source.anchor_text(anchor), sampled, options) if sampled else None
