"""Words of a sentence as a query for their page (random cropping; Izacard et al., TMLR 2022)."""

from __future__ import annotations

import numpy as np

from ..text import WORD
from .groups import PairGroup, QueryOrigin
from .negatives import draw_negatives
from .options import DrawOptions
from .passages import LEAST_WORDS, document_sections, draw_item
from .queries import Draw, Query, page_group
from .source import BuildSource
from .terms import stop_words

__all__ = ["Crop"]

_FEWEST_WORDS, _MOST_WORDS = 2, 12


class Crop:
    """For a few words of one of its sentences, a page beats other pages.

    Words alone rarely say which page is relevant, so these groups are made for the losses that read
    the scores of a teacher.
    """

    citation = "izacard2022contriever"
    stages = ()
    negative_queries = "pages"

    @staticmethod
    def examples(graph):
        """Select long enough sections and leads: id, page, place."""
        sections = document_sections(graph)
        fit = (sections.words >= LEAST_WORDS) & (sections.sentences >= 1)
        return sections.filter(fit).select("id", "page", "place")

    def draw(
        self, example: int, rng: np.random.Generator, source: BuildSource, options: DrawOptions
    ) -> PairGroup | None:
        """Draw words that follow each other, in half of the cases without stop words."""
        page, place = source.examples["crop"].values(example, ("page", "place"))
        sentences = source.split_into_sentences(page, source.tree(page).nodes[place].text)
        words = WORD.findall(draw_item(rng, sentences).lower())
        size = int(rng.integers(_FEWEST_WORDS, _MOST_WORDS + 1))
        start = int(rng.integers(max(len(words) - size, 0) + 1))
        words = words[start : start + size]
        if rng.integers(2):
            dropped = stop_words(options.stop_words)
            words = [word for word in words if word not in dropped]
        if not words:
            return None
        query = Query(" ".join(words), QueryOrigin(page))
        negatives: list[int] = []
        count = options.negatives_per_group
        for kind, most in ((options.negatives, -(-count // 2)), ("task", count)):
            negatives += draw_negatives(
                Draw(rng, source, options),
                positive=page,
                excluded=set(negatives),
                queries=self.negative_queries,
                id=page,
                count=most - len(negatives),
                kind=kind,
                related=lambda other: source.are_linked(page, other),
            )
        return page_group("crop", query, [page, *negatives], source, options)
