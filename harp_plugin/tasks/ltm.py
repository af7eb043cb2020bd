"""Long Texts Matching (Wikiformer, eq. 6)."""

from __future__ import annotations

import numpy as np

from .base import linked_pages
from .groups import Pair, PairGroup, QueryOrigin
from .options import DrawOptions
from .passages import draw_item, draw_page
from .queries import Query, page_pair
from .source import BuildSource

__all__ = ["LTM"]

_ARTICLE = ["text"]


class LTM:
    """For an article as query, one that it names under "See also" beats articles at random."""

    citation = "su2024wikiformer"
    stages = ()

    @staticmethod
    def examples(graph):
        """Select documents with see-also links to others.

        Columns: id, targets, linked (all pages that it links to).
        """
        import ibis

        documents = graph["documents"].select("id")
        pairs = graph["see_also"].semi_join(documents, [("target", "id")])
        pairs = pairs.semi_join(documents.view(), [("source", "id")])
        targets = pairs.group_by(id="source").aggregate(targets=pairs.target.collect())
        joined = targets.left_join(linked_pages(graph), [("id", "source")])
        none = ibis.literal([], type="array<int64>")
        linked = joined.pages.fill_null(none)
        return joined.select("id", targets=joined.targets.sort(), linked=linked)

    def draw(
        self, example: int, rng: np.random.Generator, source: BuildSource, options: DrawOptions
    ) -> PairGroup | None:
        """Draw one target, and documents that the article does not link."""
        table = source.examples["ltm"]
        targets = table.array(example, "targets").tolist()
        excluded = {example, *targets, *table.array(example, "linked").tolist()}
        fields = options.document_fields or _ARTICLE
        target = draw_item(rng, targets)
        query = Query(source.document(example, _ARTICLE), QueryOrigin(example))
        negatives: list[Pair] = []
        while len(negatives) < (options.negatives_per_group or 1):
            page = draw_page(rng, source.documents, excluded)
            if page is None:
                break
            excluded.add(page)
            negatives.append(page_pair(query, page, source, fields))
        positive = page_pair(query, target, source, fields)
        return PairGroup("ltm", positive, tuple(negatives)) if negatives else None
