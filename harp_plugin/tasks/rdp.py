"""Representative Document Prediction (HARP, section 3.2.3, eq. 10 to 12)."""

from __future__ import annotations

import numpy as np

from .anchors import draw_two
from .base import sentences_of_several_pages
from .groups import PairGroup, QueryOrigin
from .negatives import draw_negatives
from .options import DrawOptions
from .queries import Draw, Query, page_group
from .source import BuildSource

__all__ = ["RDP"]


class RDP:
    """For a sentence as a long query, the page of its weightier anchor beats the lighter one's."""

    negative_queries = "sentences"

    @staticmethod
    def examples(graph):
        """Select the sentences that link to two pages or more."""
        return sentences_of_several_pages(graph)

    def draw(
        self, example: int, rng: np.random.Generator, source: BuildSource, options: DrawOptions
    ) -> PairGroup | None:
        """Draw two anchors that lead to distinct pages; a tie of their weights gives nothing."""
        pair = draw_two(example, rng, source, options)
        if pair is None:
            return None
        first, second = pair
        pages = [second.page]
        relevant = source.pages_linked_by(example) | source.text_targets(first.text_id)
        if options.negatives != "task":
            pages = draw_negatives(
                Draw(rng, source, options),
                positive=first.page,
                excluded=relevant,
                queries=self.negative_queries,
                id=example,
                own=lambda _: None,
            )
        query = Query(source.sentence(example), QueryOrigin(first.source, sentence=example))
        relevant.difference_update(pages)
        return page_group("rdp", query, [first.page, *pages], source, options, relevant)
