"""Anchor texts as queries for the pages that they lead to (Anchor-DR, Xie et al., SIGIR 2023)."""

from __future__ import annotations

import math

import numpy as np

from ..graph.functional import FUNCTIONAL_ANCHORS
from ..work.mapped import MappedTable
from .groups import PairGroup
from .negatives import draw_negatives
from .options import DrawOptions
from .queries import Draw, page_group
from .source import BuildSource

__all__ = ["AnchorText"]


class AnchorText:
    """For an anchor text, the page that it leads to beats pages that it leads to nowhere."""

    citation = "xie2023anchordr"
    negative_queries = "anchor_texts"

    @staticmethod
    def stages(options: DrawOptions) -> tuple[str, ...]:
        """Name the stages that options need: for the context of an anchor, for texts like queries.

        By default there are none.
        """
        weights = ("weights",) if options.anchor_query == "context" else ()
        return weights if options.query_like_share == 1 else (*weights, "query_likeness")

    @staticmethod
    def examples(graph):
        """Select an anchor for each text and page: id, functional, rank in page.

        Functional texts, such as "here", rank behind all others.
        """
        import ibis

        anchors = graph["anchors"]
        functional = anchors.normalized.isin(sorted(FUNCTIONAL_ANCHORS))
        marked = anchors.mutate(functional=functional)
        first = marked.group_by("text_id", "page", "functional").aggregate(id=marked.id.min())
        by_page = ibis.window(group_by="page", order_by=["functional", "id"])
        return first.select("id", "functional", rank=ibis.row_number().over(by_page))

    @staticmethod
    def select(examples: MappedTable, options: DrawOptions, source: BuildSource) -> np.ndarray:
        """Select the ids of each page's first examples, as many as the options say."""
        most, fraction = options.anchors_per_page, options.query_like_share
        columns = examples.columns(examples.ids, "rank", "functional")
        ranks, functional = (column.to_numpy(zero_copy_only=False) for column in columns)
        kept = ~functional | (options.functional_anchors == "keep")
        if fraction < 1:
            return _query_like(examples.ids[kept], source, fraction, most)
        return examples.ids[kept & (ranks < most)]

    def draw(
        self, example: int, rng: np.random.Generator, source: BuildSource, options: DrawOptions
    ) -> PairGroup | None:
        """Draw the negatives; by the task's own definition, uniformly from the documents."""
        anchor = source.anchor(example)
        draw, is_context = Draw(rng, source, options), options.anchor_query == "context"
        query = draw.context_query(anchor) if is_context else draw.anchored(anchor)
        relevant = source.text_targets(anchor.text_id) | source.pages_linked_by(anchor.sentence)
        pages = draw_negatives(
            draw,
            positive=anchor.page,
            excluded=relevant,
            queries=self.negative_queries,
            id=anchor.text_id,
            count=options.negatives_per_group,
        )
        drawn = [anchor.page, *pages]
        return query and page_group("anchor", query, drawn, source, options, relevant)


def _query_like(ids: np.ndarray, source: BuildSource, fraction: float, most: int) -> np.ndarray:
    """Keep the examples of the texts that look most like queries, and of each page the first.

    Args:
        ids: of the examples, ascending.
        source: the build.
        fraction: of the distinct texts that are kept.
        most: examples of a page.
    """
    texts, pages = source.texts_and_pages(ids)
    distinct = np.unique(texts)
    best = np.argsort(-source.query_likeness(distinct), kind="stable")
    kept = np.isin(texts, distinct[best[: math.ceil(fraction * len(distinct))]])
    ids, pages = ids[kept], pages[kept]
    by_page = np.lexsort((ids, pages))
    _, starts, sizes = np.unique(pages[by_page], return_index=True, return_counts=True)
    ranks = np.arange(len(ids)) - np.repeat(starts, sizes)
    return np.sort(ids[by_page][ranks < most])
