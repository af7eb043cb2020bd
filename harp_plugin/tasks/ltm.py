"""Long Texts Matching (Wikiformer, eq. 6)."""

from __future__ import annotations

import numpy as np

from .base import Source, linked_pages
from .groups import Pair, PairGroup
from .options import DrawOptions
from .passages import draw_page, one


class LTM:
    """For an article as query, one that it names under "See also" beats articles at random."""

    needs = ()

    @staticmethod
    def examples(graph):
        """Documents with see-also links to others: id, targets, linked (all pages it links to)."""
        import ibis

        documents = graph["documents"].select("id")
        pairs = graph["see_also"].semi_join(documents, [("target", "id")])
        pairs = pairs.semi_join(documents.view(), [("source", "id")])
        targets = pairs.group_by(id="source").aggregate(found=pairs.target.collect())
        joined = targets.left_join(linked_pages(graph), [("id", "source")])
        none = ibis.literal([], type="array<int64>")
        return joined.select("id", targets=joined.found.sort(), linked=joined.pages.fill_null(none))

    def draw(
        self, example: int, rng: np.random.Generator, source: Source, options: DrawOptions
    ) -> PairGroup | None:
        """Draw one target, and documents that the article does not link."""
        table = source.examples["ltm"]
        targets = table.array(example, "targets").tolist()
        excluded = {example, *targets, *table.array(example, "linked").tolist()}
        target = one(rng, targets)
        query = source.article(example)
        negatives: list[Pair] = []
        while len(negatives) < (options.negatives or 1):
            page = draw_page(rng, source.documents, excluded)
            if page is None:
                break
            excluded.add(page)
            negatives.append(Pair(query, source.article(page)))
        positive = Pair(query, source.article(target))
        return PairGroup("ltm", positive, tuple(negatives)) if negatives else None
