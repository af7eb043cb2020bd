"""Query Disambiguation Modeling (HARP, section 3.2.2, eq. 9)."""

from __future__ import annotations

import numpy as np

from ..graph.capped import lowest
from .anchors import draw_other_page, draw_senses
from .groups import PairGroup
from .negatives import draw_negatives
from .options import DrawOptions
from .queries import Draw, page_group
from .source import BuildSource

__all__ = ["MAX_EXAMPLES", "QDM"]

MAX_EXAMPLES = 1000
"""One anchor text gives at most this many examples."""


class QDM:
    """The page that an ambiguous anchor leads to here beats one that it leads to elsewhere."""

    negative_queries = "anchor_texts"

    @staticmethod
    def examples(graph):
        """Select occurrences of anchor texts that lead to two pages or more, capped per text.

        Columns: id (of the anchor), text_id.
        """
        texts = graph["ambiguous_texts"]
        occurrences = texts.select(text_id="id", id=texts.anchors.unnest())
        return lowest(occurrences, "text_id", "id", MAX_EXAMPLES).select("id", "text_id")

    def draw(
        self, example: int, rng: np.random.Generator, source: BuildSource, options: DrawOptions
    ) -> PairGroup | None:
        """Draw the pages and an anchor by ``qdm_negatives``, and S1 from its sentence."""
        draw = Draw(rng, source, options)
        anchor, other = draw_senses(rng, source.anchor(example), source, options)
        query = anchor and draw.context_query(anchor)
        if anchor is None or query is None:
            return None
        meant = source.pages_linked_by(anchor.sentence) | source.text_targets(anchor.text_id)
        pages = draw_negatives(
            draw,
            positive=anchor.page,
            excluded=meant,
            queries=self.negative_queries,
            id=anchor.text_id,
            own=lambda _: other or draw_other_page(rng, anchor, source),
        )
        return page_group("qdm", query, [anchor.page, *pages], source, options, meant)
