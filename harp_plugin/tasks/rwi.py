"""Representative Words Identification (Wikiformer, eq. 4)."""

from __future__ import annotations

import numpy as np

from .groups import PairGroup, QueryOrigin, pair_group
from .options import DrawOptions
from .passages import document_sections, draw_items
from .queries import Query, section_pair
from .source import BuildSource

__all__ = ["RWI"]


class RWI:
    """For a section's text, the path of titles down to it beats titles of other sections."""

    citation = "su2024wikiformer"
    stages = ()

    @staticmethod
    def examples(graph):
        """Select sections with a text, on pages with enough others: id, page, place."""
        sections = document_sections(graph)
        fit = (sections.depth > 0) & (sections.words > 0) & (sections.others >= sections.depth)
        return sections.filter(fit).select("id", "page", "place")

    def draw(
        self, example: int, rng: np.random.Generator, source: BuildSource, options: DrawOptions
    ) -> PairGroup | None:
        """Draw queries of the page's title and as many other titles as the path has."""
        page, place = source.examples["rwi"].values(example, ("page", "place"))
        tree = source.tree(page)
        section, path = tree.nodes[place], tree.path(place)
        titled = tree.others(place) if options.rwi_negatives == "others" else tree.others(0)
        texts = [
            " ".join([path[0], *(other.title for other in draw_items(rng, titled, section.depth))])
            for _ in range(options.negatives_per_group)
        ]
        pairs = (
            section_pair(Query(text, QueryOrigin(page)), page, section)
            for text in dict.fromkeys([" ".join(path), *texts])
        )
        return pair_group("rwi", pairs)
