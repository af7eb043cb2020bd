"""Redirects followed to their ends, and all titles by which a page can be named."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from ..engine import Tables

MAX_HOPS = 16
"""Redirects that are followed on end: four doublings of one."""


def first_redirects(tables: Tables) -> ir.Table:
    """One target for each redirect, the least; a page of the same title wins over a redirect.

    Columns: source, target (keys).
    """
    redirects = tables["redirects"].anti_join(tables["kept"], [("source", "key")])
    return redirects.group_by("source").aggregate(target=redirects.target.min())


def doubled(tables: Tables, *, name: str) -> ir.Table:
    """Redirects followed twice as far as in table ``name`` (pointer doubling)."""
    redirects = tables[name]
    further = redirects.view().rename(via="source", beyond="target")
    joined = redirects.left_join(further, [("target", "via")])
    return joined.select("source", target=joined.beyond.fill_null(joined.target))


def titles(tables: Tables) -> ir.Table:
    """Every title that names a page: its own, and those of redirects that end at it.

    Columns: title, page (id), no_source, no_document.
    """
    import ibis

    kept = tables["kept"]
    named = kept.select("no_source", "no_document", title="key", page="id")
    redirects = tables[f"redirects_{MAX_HOPS}"]
    ended = redirects.inner_join(named.view().rename(end="title"), [("target", "end")])
    ended = ended.select("no_source", "no_document", "page", title="source")
    return ibis.union(named, ended.select(named.columns))


def dropped_redirects(tables: Tables) -> ir.Table:
    """Numbers of redirects that lead nowhere, by reason."""
    import ibis
    from ibis import _

    redirects = tables["redirects"]
    distinct = redirects.group_by("source", "target").aggregate(copies=redirects.count())
    first = tables["redirects_1"].select(via="source", chosen="target")
    last = tables[f"redirects_{MAX_HOPS}"].select(through="source", end="target")
    again = tables["redirects_1"].select(on="source")
    pages = tables["kept"].select(page="key").distinct()
    joined = distinct.left_join(first, [("source", "via")]).left_join(last, [("source", "through")])
    joined = joined.left_join(again, [("end", "on")]).left_join(pages, [("end", "page")])
    reason = ibis.cases(
        (_.via.isnull(), "redirect from the title of a page"),
        (_.target != _.chosen, "second target of a redirect"),
        (_.source == _.target, "redirect to itself"),
        (_.on.notnull(), f"redirect in a loop or through more than {MAX_HOPS} others"),
        (_.page.isnull(), "redirect to a missing page"),
        else_=ibis.null("string"),
    )
    dropped = joined.select("copies", reason=reason).filter(_.reason.notnull())
    twice = distinct.aggregate(count=(distinct.copies - 1).sum().fill_null(0)).mutate(
        reason=ibis.literal("redirect read twice")
    )
    counted = dropped.group_by("reason").aggregate(count=dropped.count())
    return ibis.union(counted, twice.select("reason", "count"))
