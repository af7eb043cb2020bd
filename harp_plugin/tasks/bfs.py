"""Body First Selection (Chang et al., ICLR 2020)."""

from __future__ import annotations

import numpy as np

from .base import Source
from .groups import Pair, PairGroup
from .options import DrawOptions
from .passages import LEAST_WORDS, document_sections, draw_page, one, passages


class BFS:
    """For a sentence of a page's lead, a passage of the page's body beats another page's."""

    needs = ()

    @staticmethod
    def examples(graph):
        """Documents with a long enough section below the lead."""
        sections = document_sections(graph)
        body = sections.filter((sections.depth > 0) & (sections.words >= LEAST_WORDS))
        return body.select(id="page").distinct()

    def draw(
        self, example: int, rng: np.random.Generator, source: Source, options: DrawOptions
    ) -> PairGroup | None:
        """Draw a sentence of the lead, a passage of the page, and one of a random example."""
        page = draw_page(rng, source.examples["bfs"].ids, {example})
        sentences = source.sentences_of(example, source.document(example))
        if page is None or not sentences:
            return None
        query = one(rng, sentences)
        positive, negative = (one(rng, passages(source.tree(p))) for p in (example, page))
        return PairGroup("bfs", Pair(query, positive), (Pair(query, negative),))
