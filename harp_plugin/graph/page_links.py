"""The links of each page: those that stand on it, and the pages that link to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .capped import lowest

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from ..work.sql.steps import Tables

__all__ = ["MAX_SOURCES", "page_links"]

MAX_SOURCES = 1000
"""Of the pages that link to a page, this many are listed: those of the lowest ids."""


def page_links(tables: Tables) -> ir.Table:
    """Return the links of every page that a link stands on or a resolved link leads to.

    Columns: id, anchors (resolved links that stand on the page), targets (distinct pages that they
    lead to), linked (distinct pages of all links on the page that resolve, those that a filter
    drops included), sources (distinct pages that link to it, at most `MAX_SOURCES`). All lists are
    ascending.
    """
    import ibis

    anchors, links = tables["anchors"], tables["resolved_links"]
    pairs = anchors.select("source", "page").distinct()
    standing = anchors.group_by("source").aggregate(anchors=anchors.id.collect())
    targets = pairs.group_by("source").aggregate(targets=pairs.page.collect())
    all_pairs = links.filter(links.page.notnull()).select("source", "page").distinct()
    linked = all_pairs.group_by("source").aggregate(linked=all_pairs.page.collect())
    few = lowest(pairs, "page", "source", MAX_SOURCES)
    sources = few.group_by("page").aggregate(sources=few.source.collect())
    ids = ibis.union(all_pairs.select(id="source"), pairs.select(id="page")).distinct()
    joined = (
        ids.left_join(standing, [("id", "source")])
        .select("id", "anchors")
        .left_join(targets, [("id", "source")])
        .select("id", "anchors", "targets")
        .left_join(linked, [("id", "source")])
        .select("id", "anchors", "targets", "linked")
        .left_join(sources, [("id", "page")])
    )
    none = ibis.literal([], type="array<int64>")
    lists = ("anchors", "targets", "linked", "sources")
    return joined.select("id", **{name: joined[name].fill_null(none).sort() for name in lists})
