"""See-also links between pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .pages import NO_SOURCE, reasons

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from ..engine import Tables


def resolved_see_also(tables: Tables) -> ir.Table:
    """All see-also links with their target, or with the reason why they are dropped."""
    import ibis
    from ibis import _

    pages, titles = tables["pages"], tables["titles"]
    listed = pages.select(source="id", key=pages.see_also.unnest()).distinct()
    origin = tables["kept"].select(source="id", unfit_source="no_source")
    target = titles.select("title", target="page", unfit_target="no_source")
    joined = listed.left_join(target, [("key", "title")]).left_join(origin, "source")
    same = ibis.window(group_by=["source", "target"], order_by="key")
    joined = joined.mutate(repeated=ibis.row_number().over(same))
    reason = ibis.cases(
        (_.target.isnull(), "see-also link to a missing page"),
        (_.target == _.source, "see-also link to its own page"),
        *reasons("see-also link to ", _.unfit_target, NO_SOURCE),
        *reasons("see-also link from ", _.unfit_source, NO_SOURCE),
        (_.repeated > 0, "see-also link that repeats another"),
        else_=ibis.null("string"),
    )
    return joined.select("source", "target", reason=reason)


def dropped_see_also(tables: Tables) -> ir.Table:
    """Numbers of dropped see-also links by reason."""
    dropped = tables["resolved_see_also"].filter(lambda t: t.reason.notnull())
    return dropped.group_by("reason").aggregate(count=dropped.count())


def see_also(tables: Tables) -> ir.Table:
    """Distinct pairs of pages, redirects resolved: source, target."""
    kept = tables["resolved_see_also"].filter(lambda t: t.reason.isnull())
    return kept.select("source", "target")
