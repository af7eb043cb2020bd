"""Representative Query Prediction (HARP, section 3.2.1, eq. 1 to 8)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .groups import PairGroup
from .options import DrawOptions
from .queries import Draw, page_pair
from .source import BuildSource
from .worse_queries import mirrored_query, other_anchor_query, page_query

__all__ = ["RQP"]

_WORSE_QUERIES = {
    "anchors_on_page": other_anchor_query,
    "mirrored": mirrored_query,
    "page": page_query,
}


class RQP:
    """The anchor with words of its sentence beats a query of the linked page, for that page."""

    @staticmethod
    def examples(graph):
        """Select every resolved anchor."""
        return graph["anchors"].select("id")

    def draw(
        self, example: int, rng: np.random.Generator, source: BuildSource, options: DrawOptions
    ) -> PairGroup | None:
        """Draw S1 from the anchor's sentence, and S2 by ``rqp_negative_words`` (eq. 6)."""
        anchor = source.anchor(example)
        draw = Draw(rng, source, options)
        better = draw.context_query(anchor)
        if better is None:
            return None
        worse = _WORSE_QUERIES[options.rqp_negative_words](better, anchor, draw)
        if worse is None or worse.text in ("", better.text):
            return None
        positive = page_pair(better, anchor.page, source, options.document_fields)
        negative = replace(positive, query=worse.text, query_origin=worse.origin)
        return PairGroup("rqp", positive, (negative,))
