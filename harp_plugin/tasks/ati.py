"""Abstract Texts Identification (Wikiformer, eq. 5)."""

from __future__ import annotations

import numpy as np

from .base import Source
from .groups import Pair, PairGroup
from .options import DrawOptions
from .passages import document_sections, some


class ATI:
    """For an article's title, its lead beats its other sections."""

    needs = ()

    @staticmethod
    def examples(graph):
        """Documents with a section of some words below the lead."""
        sections = document_sections(graph)
        below = sections.filter((sections.depth > 0) & (sections.words > 0))
        return below.select(id="page").distinct()

    def draw(
        self, example: int, rng: np.random.Generator, source: Source, options: DrawOptions
    ) -> PairGroup | None:
        """Draw sections as negatives; those without a word are left out."""
        root, *below = (tree := source.tree(example)).nodes
        texts = {n.text for n in below if tree.words[n.place]} - {root.text}
        drawn = some(rng, sorted(texts), options.negatives)
        negatives = tuple(Pair(root.title, text) for text in drawn)
        return PairGroup("ati", Pair(root.title, root.text), negatives) if negatives else None
