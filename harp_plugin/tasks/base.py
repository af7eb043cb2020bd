"""What a pre-training task is, and the tables that several tasks make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ..graph.capped import lowest, with_lists
from .groups import PairGroup
from .options import DrawOptions
from .source import BuildSource

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["Task", "document_links", "neighbors", "sentences_of_several_pages"]

_MOST_PAGES = 1000


class Task(Protocol):
    """A pre-training task: which examples there are, and how a group is drawn from one.

    A class may also have six attributes. ``stages`` names the stages of a build that a draw reads
    besides the corpus and the link graph, or is a static method that names them for `DrawOptions`;
    without it, they are ``("weights",)``.
    ``groups_per_example`` is the number of groups that an example gives in one epoch; without it,
    the number is 1. ``negative_queries`` names the texts by which a task that draws other pages
    finds hard negatives: ``anchor_texts``, ``sentences`` or ``pages``. ``select`` is a static
    method that takes the table of the examples, the `DrawOptions` and the `BuildSource`, and
    returns the ids of the examples that are drawn from, ascending; without it, all are.
    ``citation`` is the key of the task's paper in ``data/citations.bib``. ``by_design`` says of
    checks of `harp inspect`, by their names, why they are not a fault of this task.
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


def document_links(graph: Mapping[str, ir.Table]) -> ir.Table:
    """Select the pairs of documents of which the first links to the second, each once.

    Columns: source, page.
    """
    pairs = graph["anchors"].select("source", "page").distinct()
    return pairs.semi_join(graph["documents"], [("source", "id")])


def neighbors(graph: Mapping[str, ir.Table]) -> ir.Table:
    """Collect the documents that every document has links with, at most 1000 of a kind, ascending.

    Columns: id, mutual (documents that it links to and that link to it), one_way (documents that it
    links to or that link to it, without a link back, not even one that a filter drops).
    """
    import ibis

    links, pages = document_links(graph), graph["page_links"]
    back = links.select(source="page", page="source")
    every_link_back = pages.select(page="id", source=pages.linked.unnest())
    single = links.anti_join(every_link_back, ["source", "page"])
    kinds = {
        "mutual": ibis.intersect(links, back),
        "one_way": ibis.union(single, single.select(source="page", page="source")),
    }
    few = {name: lowest(pairs, "source", "page", _MOST_PAGES) for name, pairs in kinds.items()}
    lists = {name: pairs.select(of="source", value="page") for name, pairs in few.items()}
    return with_lists(graph["documents"].select("id"), lists)
