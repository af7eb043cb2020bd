"""Representative Query Prediction (HARP, section 3.2.1, eq. 1 to 8)."""

from __future__ import annotations

import numpy as np

from ..text import words
from .base import Anchor, Source, context_query, query_size
from .groups import Pair, PairGroup
from .mirror import mirrored
from .options import DrawOptions
from .terms import draw_length, draw_words, without


class RQP:
    """The anchor with words of its sentence beats words of the linked page, for that page."""

    @staticmethod
    def examples(graph):
        """Every resolved anchor."""
        return graph["anchors"].select("id")

    def draw(
        self, example: int, rng: np.random.Generator, source: Source, options: DrawOptions
    ) -> PairGroup | None:
        """Draw S1 from the anchor's sentence and S2 from the page it leads to (eq. 6)."""
        anchor = source.anchor(example)
        positive = context_query(anchor, rng, source, options)
        if positive is None:
            return None
        if options.rqp_negative_words == "mirrored":
            negative = mirrored(positive, anchor.page, rng, source, options)
        else:
            negative = self._of_page(positive, anchor, rng, source, options)
        if not negative or negative == positive:
            return None
        document = source.document(anchor.page)
        return PairGroup("rqp", Pair(positive, document), (Pair(negative, document),))

    @staticmethod
    def _of_page(
        positive: str,
        anchor: Anchor,
        rng: np.random.Generator,
        source: Source,
        options: DrawOptions,
    ) -> str | None:
        if options.negative_query_length == "equal":
            size = query_size(positive)
        else:
            size = draw_length(rng, options)
            if options.negative_query_length == "drawn_above_one" and size <= 1:
                return None
        terms = source.page_terms(anchor.page, options)
        anchor_words = words(source.anchor_text(anchor))
        terms = without(terms, anchor_words, options.anchor_words_in_negative)
        return " ".join(draw_words(rng, terms, size, options, source.heads))
