"""The links of each page: those that stand on it, and the pages that link to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .capped import lowest, with_lists

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
    all_pairs = links.filter(links.page.notnull()).select("source", "page").distinct()
    listed = {
        "anchors": anchors.select(of="source", value="id"),
        "targets": pairs.select(of="source", value="page"),
        "linked": all_pairs.select(of="source", value="page"),
        "sources": lowest(pairs, "page", "source", MAX_SOURCES).select(of="page", value="source"),
    }
    ids = ibis.union(all_pairs.select(id="source"), pairs.select(id="page")).distinct()
    return with_lists(ids, listed)
