"""Links that no task sees, of which judged queries are made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..sampling import stable_id
from .options import GraphOptions
from .reasons import HELD_OUT

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from ..work.sql.steps import Tables

__all__ = ["held_out_links", "is_held_out", "is_page_held_out"]

_PRIME = 2**31 - 1


def is_held_out(page: ir.IntegerColumn, text_id: ir.IntegerColumn, options: GraphOptions):
    """Return whether links to these pages, of these texts, are held out; None if no link is.

    A page or a text is held out with all its links. A larger share holds out more of them, and
    another seed others.
    """
    if not options.held_out_links:
        return None
    return _is_drawn(page if options.held_out_by == "page" else text_id, options)


def is_page_held_out(page: ir.IntegerColumn, options: GraphOptions):
    """Return whether all links to these pages are held out; None if no page is held out."""
    if not options.held_out_links or options.held_out_by != "page":
        return None
    return _is_drawn(page, options)


def _is_drawn(id: ir.IntegerColumn, options: GraphOptions) -> ir.BooleanColumn:
    factor = 1 + stable_id("held-out links", options.seed) % (_PRIME - 1)
    return (id % _PRIME) * factor % _PRIME < round(options.held_out_links * _PRIME)


def held_out_links(tables: Tables) -> ir.Table:
    """Return the links that are held out, and that nothing else would have dropped.

    Columns: those of the table ``anchors``.
    """
    links = tables["resolved_links"]
    return links.filter(links.reason == HELD_OUT).drop("reason")
