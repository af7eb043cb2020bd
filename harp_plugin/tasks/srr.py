"""Simulated Re-ranking (Wikiformer, eq. 1 to 3)."""

from __future__ import annotations

import numpy as np

from .groups import PairGroup, QueryOrigin, pair_group
from .options import DrawOptions
from .passages import LEAST_WORDS, distinct_sections, document_sections, draw_item, draw_items
from .queries import Query, section_pair
from .source import BuildSource

__all__ = ["SRR"]


class SRR:
    """For the path of titles down to a section, its text beats those of its siblings."""

    citation = "su2024wikiformer"
    stages = ()

    @staticmethod
    def examples(graph):
        """Select sections and leads with two long enough subsections or more: id, page, place."""
        sections = document_sections(graph)
        long_enough = sections.filter(sections.words >= LEAST_WORDS)
        children = long_enough.group_by(of="page", above="parent").aggregate(
            children=long_enough.count()
        )
        several = children.filter(children.children >= 2)
        joined = sections.inner_join(several, [("page", "of"), ("place", "above")])
        return joined.select("id", "page", "place")

    def draw(
        self, example: int, rng: np.random.Generator, source: BuildSource, options: DrawOptions
    ) -> PairGroup | None:
        """Draw a child as positive; the others are the negatives."""
        page, place = source.examples["srr"].values(example, ("page", "place"))
        tree = source.tree(page)
        children = [n for n in tree.children(place) if tree.has_words(n.place, LEAST_WORDS)]
        best = draw_item(rng, children)
        others = distinct_sections(node for node in children if node.text != best.text)
        query = Query(" ".join(tree.path(best.place)), QueryOrigin(page))
        drawn = draw_items(rng, others, options.negatives_per_group)
        return pair_group("srr", (section_pair(query, page, n) for n in (best, *drawn)))
