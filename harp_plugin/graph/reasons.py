"""Why pages, links and redirects are dropped, and how many of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = [
    "HELD_OUT",
    "MISSING",
    "NO_DOCUMENT",
    "NO_SOURCE",
    "OTHER_SITE",
    "SAME_SITE",
    "TITLE_LINK",
    "code_cases",
    "count_copies",
    "count_reasons",
]

HELD_OUT = "link that is held out for queries"
"""Why a link is in the table ``held_out_links``."""
MISSING = "link to a missing page"
OTHER_SITE = "link to another site"
"""Why a link with a whole address is left out, where pages have paths or titles for keys."""
SAME_SITE = "link between two pages of one site"
TITLE_LINK = "link whose text is the title of its page"
"""Why Anchor-DR leaves out a link: within a site, most of them are for navigation."""
_KINDS = {2: "a disambiguation page", 3: "a list page"}
NO_SOURCE = {1: "a page that is too short", **_KINDS}
"""Why a page is not a source of links, by code; the code of a source is 0."""
NO_DOCUMENT = {
    1: "a page that is too short or has no lead",
    **_KINDS,
    4: "a page with too short a lead",
    5: "a page whose lead nearly repeats another's",
}
"""Why a page is not a document, by code; the code of a document is 0."""


def code_cases(prefix: str, code: ir.IntegerValue, names: dict[int, str]) -> list[tuple]:
    """Return the cases that turn a code into a reason, such as "link to a list page".

    Args:
        prefix: the start of the reasons.
        code: a column of codes.
        names: the rest of the reason of each code, such as `NO_SOURCE`.
    """
    return [(code == number, prefix + name) for number, name in names.items()]


def count_reasons(rows: ir.Table) -> ir.Table:
    """Count the rows that have a reason, by reason.

    Columns: reason, count.
    """
    dropped = rows.filter(rows.reason.notnull())
    return dropped.group_by("reason").aggregate(count=dropped.count())


def count_copies(distinct: ir.Table, reason: str) -> ir.Table:
    """Count the rows that were read again, where ``copies`` says how often each was read.

    Columns: reason, count.
    """
    import ibis

    again = distinct.aggregate(count=(distinct.copies - 1).sum().fill_null(0))
    return again.select(reason=ibis.literal(reason), count="count")
