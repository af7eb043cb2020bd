"""Representative Query Prediction (HARP, section 3.2.1, eq. 1 to 8)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..text import words
from .groups import PairGroup, QueryOrigin
from .mirror import mirrored_query
from .options import DrawOptions
from .queries import Query, context_query, page_pair, sample_words
from .source import Anchor, BuildSource
from .terms import draw_length, without

__all__ = ["RQP"]


class RQP:
    """The anchor with words of its sentence beats words of the linked page, for that page."""

    @staticmethod
    def examples(graph):
        """Select every resolved anchor."""
        return graph["anchors"].select("id")

    def draw(
        self, example: int, rng: np.random.Generator, source: BuildSource, options: DrawOptions
    ) -> PairGroup | None:
        """Draw S1 from the anchor's sentence and S2 from the page it leads to (eq. 6)."""
        anchor = source.anchor(example)
        better = context_query(anchor, rng, source, options)
        if better is None:
            return None
        draw = mirrored_query if options.rqp_negative_words == "mirrored" else _page_query
        worse = draw(better.text, anchor, rng, source, options)
        if worse is None or worse.text in ("", better.text):
            return None
        positive = page_pair(better, anchor.page, source, options.document_fields)
        negative = replace(positive, query=worse.text, query_origin=worse.origin)
        return PairGroup("rqp", positive, (negative,))


def _page_query(
    query: str, anchor: Anchor, rng: np.random.Generator, source: BuildSource, options: DrawOptions
) -> Query | None:
    """Draw S2 from the words of the page that the anchor leads to (eq. 5)."""
    if options.negative_query_length == "equal":
        size = len(words(query))
    else:
        size = draw_length(rng, options)
        if options.negative_query_length == "drawn_above_one" and size <= 1:
            return None
    anchor_words = words(source.anchor_text(anchor))
    terms = source.page_terms(anchor.page, options)
    terms = without(terms, anchor_words, options.anchor_words_in_negative)
    sampled = sample_words(rng, terms, size, source, options, page=anchor.page)
    return Query(" ".join(s.word for s in sampled), QueryOrigin(anchor.page, sampled=sampled))
