"""Inverse Cloze Task (Lee et al., ACL 2019; Chang et al., ICLR 2020)."""

from __future__ import annotations

import numpy as np

from .groups import PairGroup, QueryOrigin, pair_group
from .negatives import draw_unlinked
from .options import DrawOptions
from .passages import LEAST_WORDS, cut_sentence, document_sections, draw_items, long_passages
from .queries import Draw, Query, section_pair
from .source import BuildSource

__all__ = ["ICT"]


class ICT:
    """For a sentence, the rest of its passage beats the rest of another page's."""

    citation = "chang2020tasks"
    stages = ()
    negative_queries = "pages"

    @staticmethod
    def examples(graph):
        """Select long enough sections and leads of two sentences or more: id, page, place."""
        sections = document_sections(graph)
        fit = (sections.words >= LEAST_WORDS) & (sections.sentences >= 2)
        return sections.filter(fit).select("id", "page", "place")

    def draw(
        self, example: int, rng: np.random.Generator, source: BuildSource, options: DrawOptions
    ) -> PairGroup | None:
        """Draw a sentence; and the passage of another page, without a sentence of its own."""
        table = source.examples["ict"]
        page, place = table.values(example, ("page", "place"))

        def own(barred: set[int]) -> int | None:
            others = (table.get(int(id), "page") for id in rng.choice(table.ids, size=100))
            return next((other for other in others if other not in barred), None)

        others = draw_unlinked(
            Draw(rng, source, options),
            page,
            positive=page,
            own=own,
            related=lambda other: not long_passages(source, other),
        )
        passages = [(page, [source.tree(page).nodes[place]])]
        for other in others:
            passages.append((other, draw_items(rng, long_passages(source, other), None)))
        parts = [part for part in (cut_sentence(rng, source, *each) for each in passages) if part]
        if len({rest.text for _, _, rest in parts}) < 2:
            return None
        query = Query(parts[0][1], QueryOrigin(page))
        return pair_group("ict", (section_pair(query, of, rest) for of, _, rest in parts))
