"""Query Disambiguation Modeling (HARP, section 3.2.2, eq. 9)."""

from __future__ import annotations

import numpy as np

from ..graph import ambiguous_anchors
from .groups import PairGroup
from .options import DrawOptions
from .queries import context_query, page_pair
from .source import BuildSource

__all__ = ["MAX_OCCURRENCES", "MAX_PAGES", "QDM"]

MAX_PAGES = 100
MAX_OCCURRENCES = 1000


class QDM:
    """The page that an ambiguous anchor leads to here beats one that it leads to elsewhere."""

    @staticmethod
    def examples(graph):
        """Select occurrences of anchor texts that lead to two pages or more, capped per text."""
        return ambiguous_anchors(graph["anchors"], MAX_PAGES, MAX_OCCURRENCES)

    def draw(
        self, example: int, rng: np.random.Generator, source: BuildSource, options: DrawOptions
    ) -> PairGroup | None:
        """Draw S1 from the anchor's sentence, and the negative by its number of occurrences."""
        anchor = source.anchor(example)
        table = source.examples["qdm"]
        pages, counts = table.array(example, "pages"), table.array(example, "counts")
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
