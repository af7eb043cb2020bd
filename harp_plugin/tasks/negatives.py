"""Pages that are the negatives of a group, by the option ``negatives``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

import numpy as np

from ..work.mapped import MappedTable
from .options import HARD_NEGATIVES
from .passages import draw_items, draw_page
from .queries import Draw
from .source import BuildSource

__all__ = ["draw_by_in_links", "draw_negatives", "draw_unlinked", "draw_unlinked_example"]

_TRIES = 100


def draw_negatives(
    draw: Draw,
    *,
    positive: int,
    excluded: set[int],
    queries: str,
    id: int,
    count: int = 1,
    kind: str | None = None,
    own: Callable[[set[int]], int | None] | None = None,
    related: Callable[[int], bool] | None = None,
    unlike: Sequence[int] = (),
) -> list[int]:
    """Draw distinct pages as negatives, none of which is likely to be relevant.

    A page is never drawn that is excluded or that is the positive, nor, unless the option
    ``alike_negatives`` allows it, one that has the title of the positive or of a page of
    ``unlike``, or whose lead is a near-duplicate of the lead of one of these. (A link through a
    redirect counts as a link to the redirect's page.)

    Args:
        draw: what pages are drawn with.
        positive: id of the positive page.
        excluded: ids of other pages that may be relevant.
        queries: the texts by which hard negatives were searched: ``anchor_texts``, ``sentences`` or
            ``pages``.
        id: id of the group's text among these.
        count: number of pages; there are fewer where no more can be found.
        kind: says which pages are drawn: ``task`` those of ``own``; ``in_links`` pages in
            proportion to their in-links; ``bm25``, ``model`` and ``dense`` uniformly those that a
            search found for the text; None for what the option ``negatives`` says.
        own: draws one page by the task's own definition, outside a set of ids; None where there
            is none. Without it, pages are drawn uniformly from the documents.
        related: tells whether a page that is not excluded may be relevant for another reason.
        unlike: ids of other pages that no negative may be like, such as that of the query's text.
    """
    rng, source, options = draw
    barred, kind = {positive, *excluded}, kind or options.negatives

    def may_be_relevant(page: int) -> bool:
        if related is not None and related(page):
            return True
        return any(source.are_alike(page, other, options) for other in (positive, *unlike))

    if kind in HARD_NEGATIVES:
        ranked = source.hard_negatives(kind, queries, id)
        pages = [page for page in ranked if page not in barred]
        shuffled = draw_items(rng, pages, None)
        return list(islice((page for page in shuffled if not may_be_relevant(page)), count))
    chosen: list[int] = []
    for _ in range(_TRIES * count):
        if kind == "in_links":
            page = draw_by_in_links(rng, source, barred)
        elif own is not None:
            page = own(barred)
        else:
            page = draw_page(rng, source.documents, barred)
        if page is None or len(chosen) == count:
            break
        barred.add(page)
        if not may_be_relevant(page):
            chosen.append(page)
    return chosen


def draw_unlinked(
    draw: Draw,
    page: int,
    *,
    positive: int,
    own: Callable[[set[int]], int | None] | None = None,
    related: Callable[[int], bool] | None = None,
) -> list[int]:
    """Draw the negative of a query that is a text of a page: a page without a link to or from it.

    Nor is it like the query's page, unless the option ``alike_negatives`` allows it.

    Returns:
        One page, or none where there is none. Further arguments are those of `draw_negatives`; hard
        negatives are those of the page.
    """
    return draw_negatives(
        draw,
        positive=positive,
        excluded={page},
        queries="pages",
        id=page,
        own=own,
        related=lambda other: (
            draw.source.are_linked(page, other) or (related is not None and related(other))
        ),
        unlike=[page],
    )


def draw_unlinked_example(draw: Draw, page: int, examples: MappedTable) -> list[int]:
    """Draw what `draw_unlinked` draws, from the pages that are examples of the task themselves."""
    return draw_unlinked(
        draw,
        page,
        positive=page,
        own=lambda barred: draw_page(draw.rng, examples.ids, barred),
        related=lambda other: other not in examples,
    )


def draw_by_in_links(
    rng: np.random.Generator, source: BuildSource, excluded: set[int]
) -> int | None:
    """Draw a page in proportion to its in-links; None where every linked page is excluded."""
    ends = source.in_link_ends
    if not len(ends) or not ends[-1]:
        return None
    for _ in range(_TRIES):
        page = int(source.documents[ends.searchsorted(rng.integers(ends[-1]), side="right")])
        if page not in excluded:
            return page
    chances = np.where(np.isin(source.documents, list(excluded)), 0, source.in_links)
    if not chances.any():
        return None
    return int(rng.choice(source.documents, p=chances / chances.sum()))
