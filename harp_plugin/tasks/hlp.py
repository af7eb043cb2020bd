"""Hyperlink-induced Pre-training (Zhou et al., ACL 2022)."""

from __future__ import annotations

import numpy as np

from .base import neighbors
from .groups import PairGroup, QueryOrigin
from .negatives import draw_by_in_links, draw_unlinked
from .options import DrawOptions
from .passages import draw_item, draw_items, passage_group, passages
from .queries import Draw, Query
from .source import BuildSource

__all__ = ["HLP"]


class HLP:
    """Two passages suit each other if links connect their pages; another page's passage suits less.

    Two pages link to each other (dual link), or one page links to both (co-mention).
    """

    citation = "zhou2022hlp"
    stages = ()
    negative_queries = "pages"

    @staticmethod
    def examples(graph):
        """Select the documents with such links: id, mutual (documents with links both ways)."""
        near, pages = neighbors(graph), graph["page_links"]
        several = pages.filter(pages.targets.length() >= 2)
        together = several.select(id=several.targets.unnest())
        dual = near.filter(near.mutual.length() > 0).select("id")
        return near.select("id", "mutual").semi_join(together.union(dual), "id")

    def draw(
        self, example: int, rng: np.random.Generator, source: BuildSource, options: DrawOptions
    ) -> PairGroup | None:
        """Draw a relation that the page has, a page of it, and by its in-links an unrelated one."""
        sources = source.page_links(example).sources.tolist()
        mutual = source.examples["hlp"].array(example, "mutual").tolist()
        targets = (source.page_links(page).targets for page in draw_items(rng, sources, None))
        together = next((pages.tolist() for pages in targets if len(pages) >= 2), [example])
        together.remove(example)
        page = draw_item(rng, draw_item(rng, [pages for pages in (mutual, together) if pages]))
        negatives = draw_unlinked(
            Draw(rng, source, options),
            example,
            positive=page,
            own=lambda barred: draw_by_in_links(rng, source, barred),
            related=lambda page: (
                not set(sources).isdisjoint(source.page_links(page).sources.tolist())
            ),
        )
        query = Query(draw_item(rng, passages(source, example)).text, QueryOrigin(example))
        return passage_group("hlp", query, [page, *negatives], rng, source)
