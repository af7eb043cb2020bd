"""Follows redirects to their ends, and collects all titles of a page."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..work.sql.steps import Step
from .reasons import count_copies, count_reasons

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from ..work.sql.steps import Tables

__all__ = ["MAX_HOPS", "doubled", "dropped_redirects", "first_redirects", "title_steps", "titles"]

MAX_HOPS = 16
"""How many redirects are followed one after the other: one, doubled four times."""


def title_steps() -> list[Step]:
    """Return the steps that make the temporary table ``titles`` of pages and redirects."""
    hops = (1, 2, 4, 8)
    return [
        Step("redirects_1", first_redirects, "temporary"),
        *(
            Step(f"redirects_{2 * hop}", partial(doubled, name=f"redirects_{hop}"), "temporary")
            for hop in hops
        ),
        Step("titles", titles, "temporary"),
    ]


def first_redirects(tables: Tables) -> ir.Table:
    """Return the lowest target of each redirect; a page wins over a redirect of the same title.

    Columns: source, target (keys).
    """
    redirects = tables["redirects"].anti_join(tables["coded_pages"], [("source", "key")])
    return redirects.group_by("source").aggregate(target=redirects.target.min())


def doubled(tables: Tables, *, name: str) -> ir.Table:
    """Follow redirects twice as far as in the table ``name`` (pointer doubling)."""
    redirects = tables[name]
    further = redirects.view().rename(via="source", beyond="target")
    joined = redirects.left_join(further, [("target", "via")])
    return joined.select("source", target=joined.beyond.fill_null(joined.target))


def titles(tables: Tables) -> ir.Table:
    """Return every title of a page: its own, and those of the redirects that end at it.

    Columns: title, page (id), no_source, no_document.
    """
    import ibis

    pages = tables["coded_pages"]
    own_titles = pages.select("no_source", "no_document", title="key", page="id")
    redirects = tables[f"redirects_{MAX_HOPS}"]
    ended = redirects.inner_join(own_titles.view().rename(end="title"), [("target", "end")])
    ended = ended.select("no_source", "no_document", "page", title="source")
    return ibis.union(own_titles, ended.select(own_titles.columns))


def dropped_redirects(tables: Tables) -> ir.Table:
    """Count the redirects that lead to no page, by reason."""
    import ibis
    from ibis import _

    redirects = tables["redirects"]
    distinct = redirects.group_by("source", "target").aggregate(copies=redirects.count())
    first = tables["redirects_1"].select(via="source", chosen="target")
    last = tables[f"redirects_{MAX_HOPS}"].select(through="source", end="target")
    again = tables["redirects_1"].select(on="source")
    pages = tables["coded_pages"].select(page="key").distinct()
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
    again = count_copies(distinct, "redirect read twice")
    return ibis.union(count_reasons(joined.select(reason=reason)), again)
