"""Progressive Hyperlink Prediction (Wu et al., 2022)."""

from __future__ import annotations

import numpy as np

from .base import neighbors
from .groups import PairGroup, QueryOrigin
from .negatives import draw_by_in_links, draw_unlinked
from .options import DrawOptions
from .passages import draw_item, passage_group, passages
from .queries import Draw, Query
from .source import BuildSource

__all__ = ["PHP"]


class PHP:
    """Two passages suit each other best if their pages link to each other, less if one links.

    A group compares two neighboring grades of these three, so that the higher is the positive.
    """

    citation = "wu2022php"
    stages = ()
    negative_queries = "pages"

    @staticmethod
    def examples(graph):
        """Select the documents with links to or from others: id, mutual, one_way."""
        near = neighbors(graph)
        return near.filter(near.mutual.length() + near.one_way.length() > 0)

    def draw(
        self, example: int, rng: np.random.Generator, source: BuildSource, options: DrawOptions
    ) -> PairGroup | None:
        """Draw two neighboring grades of those that the page has, and a page of each.

        The option ``negatives`` says which pages without a link are drawn; by the task's own
        definition, they are drawn in proportion to their in-links, of which linked pages have many.
        """
        table = source.examples["php"]
        grades = [table.array(example, name).tolist() for name in ("mutual", "one_way")]
        linked = [pages for pages in grades if pages]
        number = int(rng.integers(len(linked)))
        page = draw_item(rng, linked[number])
        if number + 1 < len(linked):
            negatives = [p for p in linked[number + 1] if not source.are_alike(p, page, options)]
            negatives = [draw_item(rng, negatives)] if negatives else []
        else:
            negatives = draw_unlinked(
                Draw(rng, source, options),
                example,
                positive=page,
                own=lambda barred: draw_by_in_links(rng, source, barred),
            )
        query = Query(draw_item(rng, passages(source, example)).text, QueryOrigin(example))
        return passage_group("php", query, [page, *negatives], rng, source)
