"""Wiki Link Prediction (Chang et al., ICLR 2020)."""

from __future__ import annotations

import numpy as np

from .base import Source, linked_pages
from .groups import Pair, PairGroup
from .options import DrawOptions
from .passages import draw_page, one, passages


class WLP:
    """For a sentence of a page's lead, a passage of a page that it links beats another page's."""

    needs = ()

    @staticmethod
    def examples(graph):
        """Documents with links to others: id, pages."""
        linked = linked_pages(graph)
        documents = graph["documents"].select("id")
        return linked.semi_join(documents, [("source", "id")]).select(id="source", pages="pages")

    def draw(
        self, example: int, rng: np.random.Generator, source: Source, options: DrawOptions
    ) -> PairGroup | None:
        """Draw a sentence of the lead, a linked page, one that is not linked, a passage of each.

        The passages of a page are its lead and its long enough sections.
        """
        pages = source.examples["wlp"].array(example, "pages").tolist()
        other = draw_page(rng, source.documents, {example, *pages})
        sentences = source.sentences_of(example, source.document(example))
        if other is None or not sentences:
            return None
        query = one(rng, sentences)
        texts = [
            one(rng, [source.document(page), *passages(source.tree(page))])
            for page in (one(rng, pages), other)
        ]
        positive, negative = (Pair(query, text) for text in texts)
        return PairGroup("wlp", positive, (negative,))
