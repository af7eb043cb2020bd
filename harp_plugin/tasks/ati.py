"""Abstract Texts Identification (Wikiformer, eq. 5)."""

from __future__ import annotations

import numpy as np

from .groups import PairGroup, QueryOrigin, pair_group
from .options import DrawOptions
from .passages import distinct_sections, document_sections, draw_items
from .queries import Query, section_pair
from .source import BuildSource

__all__ = ["ATI"]


class ATI:
    """For an article's title, its lead beats its other sections."""

    citation = "su2024wikiformer"
    stages = ()

    @staticmethod
    def examples(graph):
        """Select the documents with a section of some words below the lead."""
        sections = document_sections(graph)
        below = sections.filter((sections.depth > 0) & (sections.words > 0))
        return below.select(id="page").distinct()

    def draw(
        self, example: int, rng: np.random.Generator, source: BuildSource, options: DrawOptions
    ) -> PairGroup | None:
        """Draw sections as negatives; those without a word are left out."""
        root, *below = (tree := source.tree(example)).nodes
        others = distinct_sections(
            n for n in below if tree.has_words(n.place) and n.text != root.text
        )
        query = Query(root.title, QueryOrigin(example))
        drawn = draw_items(rng, others, options.negatives_per_group)
        return pair_group("ati", (section_pair(query, example, n) for n in (root, *drawn)))
