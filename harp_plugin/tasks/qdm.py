"""Query Disambiguation Modeling (HARP, section 3.2.2, eq. 9)."""

from __future__ import annotations

import numpy as np

from ..graph.capped import lowest
from .groups import PairGroup
from .options import DrawOptions
from .queries import context_query, page_pair
from .source import BuildSource

__all__ = ["MAX_EXAMPLES", "QDM"]

MAX_EXAMPLES = 1000
"""One anchor text gives at most this many examples."""


class QDM:
    """The page that an ambiguous anchor leads to here beats one that it leads to elsewhere."""

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
        """Draw S1 from the anchor's sentence, and the negative by its number of occurrences."""
        anchor = source.anchor(example)
        text = source.ambiguous_text(anchor.text_id)
        pages, counts = text.pages, text.counts
        if options.qdm_negatives == "first_ten":
            pages, counts = pages[:10], counts[:10]
        other = pages != anchor.page
        query = context_query(anchor, rng, source, options)
        if query is None or not other.any():
            return None
        chances = counts[other] / counts[other].sum()
        page = int(rng.choice(pages[other], p=chances))
        positive = page_pair(query, anchor.page, source, options.document_fields)
        negative = page_pair(query, page, source, options.document_fields)
        return PairGroup("qdm", positive, (negative,))
