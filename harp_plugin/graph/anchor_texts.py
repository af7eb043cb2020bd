"""Anchor texts and the pages that they lead to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from ..engine import Tables

__all__ = ["ambiguous_anchors", "anchor_texts"]

_PARTS = 64


def anchor_texts(tables: Tables) -> ir.Table:
    """Return every distinct anchor text with figures about its targets.

    Columns: id (the lowest id of its anchors), normalised, occurrences, pages (distinct targets),
    sources (distinct pages that it stands on), largest (occurrences of its most frequent target).
    """
    anchors = tables["anchors"]
    targets = anchors.group_by("normalised", "page").aggregate(
        links=anchors.count(), lowest=anchors.id.min()
    )
    texts = targets.group_by("normalised").aggregate(
        id=targets.lowest.min(),
        occurrences=targets.links.sum(),
        pages=targets.count(),
        largest=targets.links.max(),
    )
    places = anchors.select("normalised", "source").distinct()
    sources = places.group_by(text="normalised").aggregate(sources=places.count())
    joined = texts.inner_join(sources, [("normalised", "text")])
    return joined.select("id", "normalised", "occurrences", "pages", "sources", "largest")


def ambiguous_anchors(anchors: ir.Table, max_pages: int, max_occurrences: int) -> ir.Table:
    """Return the occurrences of anchor texts that lead to two pages or more, with these pages.

    Both limits keep the lowest ids. As ids are hashes, this is a random sample. The limit on pages
    applies before they are collected into lists, and the limit on occurrences applies in two steps,
    so that even the most frequent text fits into memory.

    Args:
        anchors: the resolved anchors.
        max_pages: the most pages of one anchor text.
        max_occurrences: the most occurrences of one anchor text.

    Columns: id (of the anchor), pages (distinct, ascending), counts (occurrences of each page).
    """
    import ibis

    pairs = anchors.group_by("normalised", "page").aggregate(links=anchors.count())
    by_text = ibis.window(group_by="normalised")
    by_page = ibis.window(group_by="normalised", order_by="page")
    pairs = pairs.mutate(targets=pairs.count().over(by_text), rank=ibis.row_number().over(by_page))
    pairs = pairs.filter((pairs.targets >= 2) & (pairs["rank"] < max_pages))
    target = ibis.struct({"page": pairs.page, "links": pairs.links})
    groups = pairs.group_by("normalised").aggregate(targets=target.collect())
    targets = groups.targets.sort()
    groups = groups.select(
        "normalised",
        pages=targets.map(lambda target: target["page"]),
        counts=targets.map(lambda target: target.links),
    ).filter(lambda t: t.pages.length() >= 2)
    occurrences = _first_occurrences(anchors.select("id", "normalised"), max_occurrences)
    return occurrences.inner_join(groups, "normalised").select("id", "pages", "counts")


def _first_occurrences(anchors: ir.Table, most: int) -> ir.Table:
    """Return, for every text, at most ``most`` anchors: those of the lowest ids."""
    import ibis

    by_part = ibis.window(group_by=[anchors.normalised, anchors.id % _PARTS], order_by=anchors.id)
    parts = anchors.mutate(rank=ibis.row_number().over(by_part))
    parts = parts.filter(parts["rank"] < most).select("id", "normalised")
    by_text = ibis.window(group_by="normalised", order_by="id")
    ranked = parts.mutate(rank=ibis.row_number().over(by_text))
    return ranked.filter(ranked["rank"] < most).select("id", "normalised")
