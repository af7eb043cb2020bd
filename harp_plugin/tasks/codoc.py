"""Two passages of one document (co-doc: Gao and Callan, ACL 2022; Anchor-DR's ablation)."""

from __future__ import annotations

import numpy as np

from .groups import PairGroup, QueryOrigin, pair_group
from .negatives import draw_unlinked_example
from .options import DrawOptions
from .passages import (
    LEAST_WORDS,
    distinct_sections,
    document_sections,
    draw_item,
    draw_items,
    long_passages,
)
from .queries import Draw, Query, section_pair
from .source import BuildSource

__all__ = ["CoDoc"]


class CoDoc:
    """For a passage of a page, another passage of the page beats one of another page."""

    citation = "gao2022cocondenser"
    stages = ()
    negative_queries = "pages"

    @staticmethod
    def examples(graph):
        """Select the documents with two long enough sections, the lead included."""
        sections = document_sections(graph)
        long = sections.filter(sections.words >= LEAST_WORDS)
        pages = long.group_by(id="page").aggregate(passages=long.count())
        return pages.filter(pages.passages >= 2).select("id")

    def draw(
        self, example: int, rng: np.random.Generator, source: BuildSource, options: DrawOptions
    ) -> PairGroup | None:
        """Draw two passages of the page, and one of a page without a link."""
        draw = Draw(rng, source, options)
        others = draw_unlinked_example(draw, example, source.examples["codoc"])
        drawn = draw_items(rng, distinct_sections(long_passages(source, example)), 2)
        if len(drawn) < 2:
            return None
        query = Query(drawn[0].text, QueryOrigin(example))
        pairs = [section_pair(query, example, drawn[1])]
        for page in others:
            pairs.append(section_pair(query, page, draw_item(rng, long_passages(source, page))))
        return pair_group("codoc", pairs)
