"""Inverse Cloze Task (Lee et al., ACL 2019; Chang et al., ICLR 2020)."""

from __future__ import annotations

import numpy as np

from .base import Source
from .groups import Pair, PairGroup
from .options import DrawOptions
from .passages import LEAST_WORDS, document_sections


class ICT:
    """For a sentence, the rest of its passage beats the rest of another page's."""

    needs = ()

    @staticmethod
    def examples(graph):
        """Sections and leads of two sentences or more that are long enough: id, page, place."""
        sections = document_sections(graph)
        fit = (sections.words >= LEAST_WORDS) & (sections.sentences >= 2)
        return sections.filter(fit).select("id", "page", "place")

    def draw(
        self, example: int, rng: np.random.Generator, source: Source, options: DrawOptions
    ) -> PairGroup | None:
        """Draw a sentence; and the passage of a random example, without a sentence of its own."""
        ids = source.examples["ict"].ids
        other = int(ids[rng.integers(len(ids))])
        page, query, rest = self._cloze(example, rng, source)
        other_page, _, other_rest = self._cloze(other, rng, source)
        if page == other_page or rest == other_rest:
            return None
        return PairGroup("ict", Pair(query, rest), (Pair(query, other_rest),))

    @staticmethod
    def _cloze(example: int, rng: np.random.Generator, source: Source) -> tuple[int, str, str]:
        """The page, a sentence of the passage, and the other sentences."""
        table = source.examples["ict"]
        page = table.get(example, "page")
        text = source.tree(page).nodes[table.get(example, "place")].text
        sentences = source.sentences_of(page, text)
        query = sentences.pop(int(rng.integers(len(sentences))))
        return page, query, " ".join(sentences)
