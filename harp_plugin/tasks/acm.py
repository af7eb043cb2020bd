"""Anchor Co-occurrence Modeling (HARP, section 3.2.4, eq. 13 and 14)."""

from __future__ import annotations

import numpy as np

from .base import sentences_of_several_pages
from .groups import PairGroup
from .negatives import draw_by_in_links, draw_negatives
from .options import DrawOptions
from .passages import draw_item, draw_page
from .queries import Draw, page_group
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
        """Draw an ordered pair of anchors, S1 from the first's page, and a third page.

        Relevant are the article itself, all pages that the sentence links to, and all that the
        first anchor's text leads to anywhere; the second's page alone where ``acm_negative_page``
        is ``any``. Its value ``same_article`` draws one of the other pages that the article links
        to. Where there is none, it draws a page in proportion to its in-links: that a page has many
        tells nothing then. The other values draw uniformly.
        """
        anchors = source.sentence_anchors(example)
        first = draw_item(rng, anchors)
        second = draw_item(rng, [anchor for anchor in anchors if anchor.page != first.page])
        words = source.page_terms(first.page, options)
        draw = Draw(rng, source, options)
        query = draw.query(first, words, page=first.page)
        if query is None:
            return None
        relevant = {second.page}
        if options.negatives != "task" or options.acm_negative_page != "any":
            relevant = source.pages_linked_by(example) | source.text_targets(first.text_id)
            relevant.add(first.source)

        def own(barred: set[int]) -> int | None:
            if options.acm_negative_page != "same_article":
                return draw_page(rng, source.documents, barred)
            page = draw_page(rng, source.page_links(first.source).targets, barred)
            return draw_by_in_links(rng, source, barred) if page is None else page

        pages = draw_negatives(
            draw,
            positive=second.page,
            excluded=relevant,
            queries=self.negative_queries,
            id=first.text_id,
            own=own,
            unlike=[first.page],
        )
        return page_group("acm", query, [second.page, *pages], source, options, relevant)
