"""Query Disambiguation Modeling (HARP, section 3.2.2, eq. 9)."""

from __future__ import annotations

import numpy as np

from ..graph import ambiguous_anchors
from .base import Source, context_query
from .groups import Pair, PairGroup
from .options import DrawOptions

MAX_PAGES = 100
MAX_OCCURRENCES = 1000


class QDM:
    """The page that an ambiguous anchor leads to here beats one that it leads to elsewhere."""

    @staticmethod
    def examples(graph):
        """Occurrences of anchor texts that lead to two pages or more, capped per anchor text."""
        return ambiguous_anchors(graph["anchors"], MAX_PAGES, MAX_OCCURRENCES)

    def draw(
        self, example: int, rng: np.random.Generator, source: Source, options: DrawOptions
    ) -> PairGroup | None:
        """Draw S1 from the anchor's sentence and the negative by its number of occurrences."""
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
        positive = Pair(query, source.document(anchor.page))
        return PairGroup("qdm", positive, (Pair(query, source.document(page)),))
