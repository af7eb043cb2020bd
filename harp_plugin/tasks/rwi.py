"""Representative Words Identification (Wikiformer, eq. 4)."""

from __future__ import annotations

import numpy as np

from .base import Source
from .groups import Pair, PairGroup
from .options import DrawOptions
from .passages import document_sections, some


class RWI:
    """For a section's text, the path of titles down to it beats titles of other sections."""

    needs = ()

    @staticmethod
    def examples(graph):
        """Sections with a text, on pages with enough others: id, page, place."""
        sections = document_sections(graph)
        fit = (sections.depth > 0) & (sections.words > 0) & (sections.others >= sections.depth)
        return sections.filter(fit).select("id", "page", "place")

    def draw(
        self, example: int, rng: np.random.Generator, source: Source, options: DrawOptions
    ) -> PairGroup | None:
        """Draw queries of the page's title and as many other titles as the path has."""
        table = source.examples["rwi"]
        page, place = table.get(example, "page"), table.get(example, "place")
        tree = source.tree(page)
        node = tree.nodes[place]
        titled = tree.others(place) if options.rwi_negatives == "others" else tree.others(0)
        path = tree.path(place)
        queries = (
            " ".join([path[0], *(other.title for other in some(rng, titled, node.depth))])
            for _ in range(options.negatives or 1)
        )
        negatives = tuple(
            Pair(query, node.text) for query in dict.fromkeys(queries) if query != " ".join(path)
        )
        positive = Pair(" ".join(path), node.text)
        return PairGroup("rwi", positive, negatives) if negatives else None
