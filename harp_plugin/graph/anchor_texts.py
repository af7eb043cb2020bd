"""What anchor texts lead to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from ..engine import Tables

_PARTS = 64


def anchor_texts(tables: Tables) -> ir.Table:
    """Every distinct anchor text with what it leads to.

    Columns: id (the least id of its anchors), normalised, occurrences, pages (distinct targets),
    sources (distinct pages that it stands on), largest (occurrences of its most frequent target).
    """
    anchors = tables["anchors"]
    targets = anchors.group_by("normalised", "page").aggregate(
        links=anchors.count(), least=anchors.id.min()
    )
    texts = targets.group_by("normalised").aggregate(
        id=targets.least.min(),
        occurrences=targets.links.sum(),
        pages=targets.count(),
        largest=targets.links.max(),
    )
    standing = anchors.select("normalised", "source").distinct()
    sources = standing.group_by(text="normalised").aggregate(sources=standing.count())
    joined = texts.inner_join(sources, [("normalised", "text")])
    return joined.select("id", "normalised", "occurrences", "pages", "sources", "largest")


def ambiguous_anchors(anchors: ir.Table, max_pages: int, max_occurrences: int) -> ir.Table:
    """Occurrences of anchor texts that lead to two pages or more, with all those pages.

    Both caps take the lowest ids; ids are hashes, so this is a random draw. The pages are capped
    before they are collected, the occurrences in two stages, so that no text is too large.

    Columns: id (of the anchor), pages (distinct, ascending), counts (occurrences of each page).
    """
    import ibis

    pairs = anchors.group_by("normalised", "page").aggregate(links=anchors.count())
    by_text = ibis.window(group_by="normalised")
    by_page = ibis.window(group_by="normalised", order_by="page")
    pairs = pairs.mutate(several=pairs.count().over(by_text), rank=ibis.row_number().over(by_page))
    pairs = pairs.filter((pairs.several >= 2) & (pairs["rank"] < max_pages))
    target = ibis.struct({"page": pairs.page, "links": pairs.links})
    groups = pairs.group_by("normalised").aggregate(targets=target.collect())
    targets = groups.targets.sort()
    groups = groups.select(
        "normalised",
        pages=targets.map(lambda target: target["page"]),
        counts=targets.map(lambda target: target.links),
    ).filter(lambda t: t.pages.length() >= 2)
    capped = _first_occurrences(anchors.select("id", "normalised"), max_occurrences)
    return capped.inner_join(groups, "normalised").select("id", "pages", "counts")


def _first_occurrences(anchors: ir.Table, most: int) -> ir.Table:
    """The anchors of lowest id of every text."""
    import ibis

    by_part = ibis.window(group_by=[anchors.normalised, anchors.id % _PARTS], order_by=anchors.id)
    parts = anchors.mutate(rank=ibis.row_number().over(by_part))
    parts = parts.filter(parts["rank"] < most).select("id", "normalised")
    by_text = ibis.window(group_by="normalised", order_by="id")
    whole = parts.mutate(rank=ibis.row_number().over(by_text))
    return whole.filter(whole["rank"] < most).select("id", "normalised")
