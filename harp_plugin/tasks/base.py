"""What a pre-training task is, and the tables that several tasks make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np

from .groups import PairGroup
from .options import DrawOptions
from .source import BuildSource

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["Task", "linked_pages", "sentences_of_several_pages"]


class Task(Protocol):
    """A pre-training task: which examples there are, and how a group is drawn from one.

    A class may also have five attributes. ``stages`` names the stages of a build that a draw reads
    beside the corpus and the link graph; without it, they are ``("weights",)``.
    ``groups_per_example`` is the number of groups that an example gives in one epoch; without it,
    the number is 1. ``negative_queries`` names the texts by which a task that draws other pages
    finds hard negatives: ``anchor_texts``, ``sentences`` or ``pages``. ``select`` is a static
    method that takes the table of the examples and the `DrawOptions`, and returns the ids of the
    examples that are drawn from, ascending; without it, all are. ``citation`` is the key of the
    task's paper in ``data/citations.bib``.
    """

    @staticmethod
    def examples(graph: Mapping[str, ir.Table]) -> ir.Table:
        """Select the examples as ids and spans only.

        Args:
            graph: the tables ``anchors``, ``sentence_anchors``, ``page_links``, ``documents``,
                ``anchor_texts``, ``ambiguous_texts`` and ``see_also`` of the link graph, and
                ``pages``, ``sentences``, ``sections`` of the corpus.

        Returns:
            An Ibis expression with a column ``id``, whose values are distinct.
        """

    def draw(
        self, example: int, rng: np.random.Generator, source: BuildSource, options: DrawOptions
    ) -> PairGroup | None:
        """Draw one group from an example.

        Returns:
            The group, or None where the example gives none, as with a tie or without words.
        """


def sentences_of_several_pages(graph: Mapping[str, ir.Table]) -> ir.Table:
    """Select the sentences with links to two pages or more.

    Columns: id.
    """
    sentences = graph["sentence_anchors"]
    return sentences.filter(sentences.targets >= 2).select("id")


def linked_pages(graph: Mapping[str, ir.Table]) -> ir.Table:
    """Collect the distinct pages that each page links to, ascending.

    Columns: source, pages.
    """
    pairs = graph["anchors"].select("source", "page").distinct()
    groups = pairs.group_by("source").aggregate(pages=pairs["page"].collect())
    return groups.select("source", pages=groups["pages"].sort())
