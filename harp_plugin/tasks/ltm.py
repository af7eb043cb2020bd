"""Long Texts Matching (Wikiformer, eq. 6)."""

from __future__ import annotations

import numpy as np

from .groups import PairGroup, QueryOrigin
from .negatives import draw_negatives
from .options import DrawOptions
from .passages import draw_item
from .queries import Draw, Query, page_group
from .source import BuildSource

__all__ = ["LTM"]

_ARTICLE = ["text"]


class LTM:
    """For an article as query, one that it names under "See also" beats articles at random."""

    citation = "su2024wikiformer"
    stages = ()
    negative_queries = "pages"

    @staticmethod
    def examples(graph):
        """Select documents with see-also links to others: id, targets."""
        documents = graph["documents"].select("id")
        pairs = graph["see_also"].semi_join(documents, [("target", "id")])
        pairs = pairs.semi_join(documents.view(), [("source", "id")])
        targets = pairs.group_by(id="source").aggregate(targets=pairs.target.collect())
        return targets.select("id", targets=targets.targets.sort())

    def draw(
        self, example: int, rng: np.random.Generator, source: BuildSource, options: DrawOptions
    ) -> PairGroup | None:
        """Draw one target, and documents that the article does not link."""
        targets = source.examples["ltm"].array(example, "targets").tolist()
        target = draw_item(rng, targets)
        relevant = {example, *targets, *source.page_links(example).linked.tolist()}
        negatives = draw_negatives(
            Draw(rng, source, options),
            positive=target,
            excluded=relevant,
            queries=self.negative_queries,
            id=example,
            count=options.negatives_per_group,
            unlike=[example],
        )
        query = Query(source.document(example, _ARTICLE), QueryOrigin(example))
        pages = [target, *negatives]
        return page_group("ltm", query, pages, source, options, relevant, fields=_ARTICLE)
