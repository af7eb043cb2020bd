"""Body First Selection (Chang et al., ICLR 2020)."""

from __future__ import annotations

import numpy as np

from .groups import PairGroup, QueryOrigin, pair_group
from .negatives import draw_unlinked_example
from .options import DrawOptions
from .passages import LEAST_WORDS, document_sections, draw_item, long_sections
from .queries import Draw, Query, section_pair
from .source import BuildSource

__all__ = ["BFS"]


class BFS:
    """For a sentence of a page's lead, a passage of the page's body beats another page's."""

    citation = "chang2020tasks"
    stages = ()
    negative_queries = "pages"

    @staticmethod
    def examples(graph):
        """Select the documents with a long enough section below the lead."""
        sections = document_sections(graph)
        body = sections.filter((sections.depth > 0) & (sections.words >= LEAST_WORDS))
        return body.select(id="page").distinct()

    def draw(
        self, example: int, rng: np.random.Generator, source: BuildSource, options: DrawOptions
    ) -> PairGroup | None:
        """Draw a sentence of the lead, a passage of the page, and one of a page without a link."""
        sentences = source.split_into_sentences(example, source.lead(example))
        draw = Draw(rng, source, options)
        others = draw_unlinked_example(draw, example, source.examples["bfs"])
        if not others or not sentences:
            return None
        query = Query(draw_item(rng, sentences), QueryOrigin(example))
        pairs = (
            section_pair(query, page, draw_item(rng, long_sections(source.tree(page))))
            for page in (example, *others)
        )
        return pair_group("bfs", pairs)
