"""Representative Document Prediction (HARP, section 3.2.3, eq. 10 to 12)."""

from __future__ import annotations

import numpy as np

from .base import sentences_of_several_pages
from .groups import PairGroup, QueryOrigin
from .importance import anchor_importance
from .options import DrawOptions
from .queries import Query, page_pair
from .source import BuildSource
from .terms import distribution

__all__ = ["RDP"]


class RDP:
    """For a sentence as a long query, the page of its weightier anchor beats the lighter one's."""

    @staticmethod
    def examples(graph):
        """Select the sentences that link to two pages or more."""
        return sentences_of_several_pages(graph)

    def draw(
        self, example: int, rng: np.random.Generator, source: BuildSource, options: DrawOptions
    ) -> PairGroup | None:
        """Draw two anchors that lead to distinct pages; a tie of their weights gives nothing."""
        anchors, weights = anchor_importance(example, source, options)
        if len({anchor.page for anchor in anchors}) < 2:
            return None
        chances = distribution(weights, options, source.heads)
        if options.rdp_anchors == "all_pairs":
            first, second = rng.choice(len(anchors), size=2, replace=False)
        else:
            first = rng.choice(len(anchors), p=chances)
            same_page = [anchor.page == anchors[first].page for anchor in anchors]
            rest = np.where(same_page, 0.0, chances)
            if not rest.any():
                return None
            second = rng.choice(len(anchors), p=rest / rest.sum())
        if weights[first] == weights[second]:
            return None
        if weights[first] < weights[second]:
            first, second = second, first
        origin = QueryOrigin(anchors[first].source, sentence=example)
        query = Query(source.sentence(example), origin)
        positive, negative = (
            page_pair(query, anchors[place].page, source, options.document_fields)
            for place in (first, second)
        )
        return PairGroup("rdp", positive, (negative,))
