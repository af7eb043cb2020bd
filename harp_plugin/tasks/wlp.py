"""Wiki Link Prediction (Chang et al., ICLR 2020)."""

from __future__ import annotations

import numpy as np

from ..corpus.tree import Node
from .base import linked_pages
from .groups import PairGroup, QueryOrigin
from .options import DrawOptions
from .passages import draw_item, draw_page, long_sections
from .queries import Query, section_pair
from .source import BuildSource

__all__ = ["WLP"]


class WLP:
    """For a sentence of a page's lead, a passage of a page that it links beats another page's."""

    citation = "chang2020tasks"
    stages = ()

    @staticmethod
    def examples(graph):
        """Select the documents with links to others: id, pages."""
        linked = linked_pages(graph)
        documents = graph["documents"].select("id")
        return linked.semi_join(documents, [("source", "id")]).select(id="source", pages="pages")

    def draw(
        self, example: int, rng: np.random.Generator, source: BuildSource, options: DrawOptions
    ) -> PairGroup | None:
        """Draw a sentence of the lead, a linked page, one that is not linked, a passage of each.

        The passages of a page are its lead and its long enough sections.
        """
        pages = source.examples["wlp"].array(example, "pages").tolist()
        other = draw_page(rng, source.documents, {example, *pages})
        sentences = source.split_into_sentences(example, source.lead(example))
        if other is None or not sentences:
            return None
        query = Query(draw_item(rng, sentences), QueryOrigin(example))
        positive, negative = (
            section_pair(query, page, draw_item(rng, _passages(page, source)))
            for page in (draw_item(rng, pages), other)
        )
        return PairGroup("wlp", positive, (negative,))


def _passages(page: int, source: BuildSource) -> list[Node]:
    tree = source.tree(page)
    return [tree.nodes[0]._replace(text=source.lead(page)), *long_sections(tree)]
