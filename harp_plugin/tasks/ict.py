"""Inverse Cloze Task (Lee et al., ACL 2019; Chang et al., ICLR 2020)."""

from __future__ import annotations

import numpy as np

from ..corpus.tree import Node
from .groups import PairGroup, QueryOrigin
from .options import DrawOptions
from .passages import LEAST_WORDS, document_sections
from .queries import Query, section_pair
from .source import BuildSource

__all__ = ["ICT"]


class ICT:
    """For a sentence, the rest of its passage beats the rest of another page's."""

    citation = "chang2020tasks"
    stages = ()

    @staticmethod
    def examples(graph):
        """Select sections and leads of two sentences or more that are long enough.

        Columns: id, page, place.
        """
        sections = document_sections(graph)
        fit = (sections.words >= LEAST_WORDS) & (sections.sentences >= 2)
        return sections.filter(fit).select("id", "page", "place")

    def draw(
        self, example: int, rng: np.random.Generator, source: BuildSource, options: DrawOptions
    ) -> PairGroup | None:
        """Draw a sentence; and the passage of a random example, without a sentence of its own."""
        ids = source.examples["ict"].ids
        other = int(ids[rng.integers(len(ids))])
        page, sentence, rest = self._cloze(example, rng, source)
        other_page, _, other_rest = self._cloze(other, rng, source)
        if page == other_page or rest.text == other_rest.text:
            return None
        query = Query(sentence, QueryOrigin(page))
        positive = section_pair(query, page, rest)
        return PairGroup("ict", positive, (section_pair(query, other_page, other_rest),))

    @staticmethod
    def _cloze(
        example: int, rng: np.random.Generator, source: BuildSource
    ) -> tuple[int, str, Node]:
        """The page, a sentence of the passage, and the section with its other sentences only."""
        table = source.examples["ict"]
        page = table.get(example, "page")
        section = source.tree(page).nodes[table.get(example, "place")]
        sentences = source.split_into_sentences(page, section.text)
        query = sentences.pop(int(rng.integers(len(sentences))))
        return page, query, section._replace(text=" ".join(sentences))
