"""Resolves the see-also links between pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .held_out import is_page_held_out
from .options import GraphOptions
from .reasons import NO_SOURCE, code_cases, count_reasons

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from ..work.sql.steps import Tables

__all__ = ["dropped_see_also", "resolved_see_also", "see_also"]


def resolved_see_also(tables: Tables, *, options: GraphOptions) -> ir.Table:
    """Return all see-also links with their targets, or with the reason why they are dropped."""
    import ibis
    from ibis import _

    pages, titles = tables["pages"], tables["titles"]
    listed = pages.select(source="id", key=pages.see_also.unnest()).distinct()
    origin = tables["coded_pages"].select(source="id", unfit_source="no_source")
    target = titles.select("title", target="page", unfit_target="no_source")
    joined = listed.left_join(target, [("key", "title")]).left_join(origin, "source")
    same = ibis.window(group_by=["source", "target"], order_by="key")
    joined = joined.mutate(repeated=ibis.row_number().over(same))
    held_out = is_page_held_out(_.target, options)
    reason = ibis.cases(
        (_.target.isnull(), "see-also link to a missing page"),
        (_.target == _.source, "see-also link to its own page"),
        *code_cases("see-also link to ", _.unfit_target, NO_SOURCE),
        *code_cases("see-also link from ", _.unfit_source, NO_SOURCE),
        (_.repeated > 0, "see-also link that repeats another"),
        *([] if held_out is None else [(held_out, "see-also link to a held-out page")]),
        else_=ibis.null("string"),
    )
    return joined.select("source", "target", reason=reason)


def dropped_see_also(tables: Tables) -> ir.Table:
    """Count the dropped see-also links by reason."""
    return count_reasons(tables["resolved_see_also"])


def see_also(tables: Tables) -> ir.Table:
    """Return the distinct pairs of pages that see-also links connect.

    Columns: source, target.
    """
    resolved = tables["resolved_see_also"]
    return resolved.filter(resolved.reason.isnull()).select("source", "target")
