"""Wiki Link Prediction (Chang et al., ICLR 2020)."""

from __future__ import annotations

import numpy as np

from ..graph.capped import lowest
from .base import document_links
from .groups import PairGroup, QueryOrigin
from .negatives import draw_unlinked
from .options import DrawOptions
from .passages import draw_item, passage_group
from .queries import Draw, Query
from .source import BuildSource

__all__ = ["MAX_SOURCES", "WLP"]

MAX_SOURCES = 1000
"""Of the pages that link to a page, this many can be drawn."""


class WLP:
    """For a sentence of a lead, a passage of a page that links to its page beats another page's."""

    citation = "chang2020tasks"
    stages = ()
    negative_queries = "pages"

    @staticmethod
    def examples(graph):
        """Select the documents that others link to: id, pages (the others)."""
        few = lowest(document_links(graph), "page", "source", MAX_SOURCES)
        linking = few.group_by(id="page").aggregate(pages=few.source.collect())
        return linking.select("id", pages=linking.pages.sort())

    def draw(
        self, example: int, rng: np.random.Generator, source: BuildSource, options: DrawOptions
    ) -> PairGroup | None:
        """Draw a sentence of the lead, a page that links to it, and one with no link either way."""
        sentences = source.split_into_sentences(example, source.lead(example))
        if not sentences:
            return None
        query = Query(draw_item(rng, sentences), QueryOrigin(example))
        page = draw_item(rng, source.examples["wlp"].array(example, "pages").tolist())
        negatives = draw_unlinked(Draw(rng, source, options), example, positive=page)
        return passage_group("wlp", query, [page, *negatives], rng, source)
