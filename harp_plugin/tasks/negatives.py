"""Pages that are the negatives of a group, by the option ``negatives``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .options import DrawOptions
from .passages import draw_items
from .source import BuildSource

__all__ = ["draw_by_in_links", "draw_negatives"]

_TRIES = 100


def draw_negatives(
    rng: np.random.Generator,
    count: int,
    *,
    positive: int,
    excluded: set[int],
    queries: str,
    id: int,
    source: BuildSource,
    options: DrawOptions,
    own: Callable[[set[int]], int | None],
) -> list[int]:
    """Draw distinct pages as negatives, none of which is likely to be relevant.

    A page is never drawn that is excluded, that is the positive, that has the positive's title, or
    whose lead is a near-duplicate of the positive's lead. (A link through a redirect counts as a
    link to the redirect's page.)

    Args:
        rng: source of randomness.
        count: number of pages; there are fewer where no more can be found.
        positive: id of the positive page.
        excluded: ids of other pages that may be relevant.
        queries: the texts by which hard negatives were searched: ``anchor_texts``, ``sentences`` or
            ``pages``.
        id: id of the group's text among these.
        source: the build.
        options: ``negatives`` says which pages are drawn: ``task`` those of ``own``; ``in_links``
            pages in proportion to their in-links; ``bm25`` and ``model`` uniformly those that a
            search found for the text.
        own: draws one page by the task's own definition, outside a set of ids; None where there
            is none.
    """
    barred = {positive, *excluded}
    if options.negatives in ("bm25", "model"):
        ranked = source.hard_negatives(options.negatives, queries, id)
        pages = [page for page in ranked if page not in barred]
        return draw_items(rng, [p for p in pages if not source.are_alike(p, positive)], count)
    chosen: list[int] = []
    for _ in range(_TRIES * count):
        if options.negatives == "in_links":
            page = draw_by_in_links(rng, source, barred)
        else:
            page = own(barred)
        if page is None or len(chosen) == count:
            break
        barred.add(page)
        if not source.are_alike(page, positive):
            chosen.append(page)
    return chosen


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
