"""Anchor Co-occurrence Modeling (HARP, section 3.2.4, eq. 13 and 14)."""

from __future__ import annotations

import numpy as np

from .base import sentences_of_several_pages
from .groups import PairGroup
from .negatives import draw_negatives, pages_linked_with, unrelated_page
from .options import DrawOptions
from .passages import draw_item
from .queries import drawn_query, page_group
from .source import BuildSource

__all__ = ["ACM"]


class ACM:
    """Words of one page that a sentence links to go with another that it links to."""

    negative_queries = "anchor_texts"

    @staticmethod
    def examples(graph):
        """Select the sentences that link to two pages or more."""
        return sentences_of_several_pages(graph)

    def draw(
        self, example: int, rng: np.random.Generator, source: BuildSource, options: DrawOptions
    ) -> PairGroup | None:
        """Draw an ordered pair of anchors, S1 from the first's page, and a third page."""
        anchors = source.sentence_anchors(example)
        first = draw_item(rng, anchors)
        second = draw_item(rng, [anchor for anchor in anchors if anchor.page != first.page])
        words = source.page_terms(first.page, options)
        query = drawn_query(first, words, rng, source, options, page=first.page)
        if query is None:
            return None
        relevant = pages_linked_with(first, second, source, options)
        pages = draw_negatives(
            rng,
            source,
            options,
            positive=second.page,
            excluded=relevant,
            queries=self.negative_queries,
            id=first.text_id,
            own=lambda excluded: unrelated_page(rng, first, excluded, source, options),
            unlike=[first.page],
        )
        return page_group(
            "acm", query, [second.page, *pages], source, options.document_fields, relevant
        )
