"""Simulated Re-ranking (Wikiformer, eq. 1 to 3)."""

from __future__ import annotations

import numpy as np

from .base import Source
from .groups import Pair, PairGroup
from .options import DrawOptions
from .passages import LEAST_WORDS, document_sections, one, some


class SRR:
    """For the path of titles down to a section, its text beats those of the sections beside it."""

    needs = ()

    @staticmethod
    def examples(graph):
        """Sections and leads with two long enough subsections or more: id, page, place."""
        sections = document_sections(graph)
        long_enough = sections.filter(sections.words >= LEAST_WORDS)
        children = long_enough.group_by(of="page", above="parent").aggregate(
            children=long_enough.count()
        )
        several = children.filter(children.children >= 2)
        joined = sections.inner_join(several, [("page", "of"), ("place", "above")])
        return joined.select("id", "page", "place")

    def draw(
        self, example: int, rng: np.random.Generator, source: Source, options: DrawOptions
    ) -> PairGroup | None:
        """Draw a child as positive; the others are the negatives.

        ``article`` takes them from the whole article, as the authors' code does. (That its positive
        is always the first deep section is not taken over.)
        """
        table = source.examples["srr"]
        page, place = table.get(example, "page"), table.get(example, "place")
        tree = source.tree(page)
        positive = one(rng, [n for n in tree.children(place) if tree.words[n.place] >= LEAST_WORDS])
        rest = tree.nodes[1:] if options.srr_negatives == "article" else tree.children(place)
        others = {n.text for n in rest if tree.words[n.place] >= LEAST_WORDS} - {positive.text}
        query = " ".join(tree.path(positive.place))
        texts = some(rng, sorted(others), options.negatives)
        negatives = tuple(Pair(query, text) for text in texts)
        return PairGroup("srr", Pair(query, positive.text), negatives) if negatives else None
