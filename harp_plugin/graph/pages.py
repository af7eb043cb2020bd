"""Decides which pages may be a source of links, and which may be a document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .options import GraphOptions
from .reasons import NO_DOCUMENT, code_cases, count_copies, count_reasons

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from ..work.sql.steps import Tables

__all__ = ["checked_pages", "coded_pages", "dropped_pages", "near_duplicates", "sites"]


def checked_pages(tables: Tables, *, options: GraphOptions) -> ir.Table:
    """Return all pages with codes of `NO_SOURCE` and `NO_DOCUMENT`, without near-duplicates.

    Where the source does not hold the whole page, the page has no word count and counts as long
    enough. Of a page that was read twice, the lower codes count.

    Columns: id, key, no_source, no_document.
    """
    import ibis

    pages = tables["pages"]
    long_enough = pages.words.isnull() | (pages.words >= options.min_words)
    choices = (("disambiguation", options.disambiguation_pages, 2), ("list", options.list_pages, 3))
    kinds = [(pages.kind == kind, code) for kind, choice, code in choices if choice == "drop"]
    short_lead = [(pages.lead_words < options.min_lead_words, 4)] if options.min_lead_words else []
    no_source = ibis.cases((~long_enough, 1), *kinds, else_=0)
    no_document = ibis.cases((~long_enough | (pages.lead == ""), 1), *kinds, *short_lead, else_=0)
    coded = pages.select("id", "key", no_source=no_source, no_document=no_document)
    return coded.group_by("id", "key").aggregate(
        no_source=coded.no_source.min(), no_document=coded.no_document.min()
    )


def near_duplicates(tables: Tables) -> ir.Table:
    """Return the ids of documents that share a band with a document of a lower id."""
    pages, checked = tables["pages"], tables["checked_pages"]
    documents = checked.filter(checked.no_document == 0).select("id")
    banded = pages.select("id", band=pages.lead_bands.unnest()).distinct()
    banded = banded.semi_join(documents, "id")
    firsts = banded.group_by(shared="band").aggregate(first=banded.id.min())
    joined = banded.inner_join(firsts, [("band", "shared")])
    return joined.filter(joined.first < joined.id).select("id").distinct()


def coded_pages(tables: Tables, *, options: GraphOptions) -> ir.Table:
    """Return all pages with codes of `NO_SOURCE` and `NO_DOCUMENT`.

    Columns: id, key, no_source, no_document.
    """
    import ibis

    checked = tables["checked_pages"]
    if options.near_duplicate_leads == "keep":
        return checked
    repeating = tables["near_duplicates"].select(repeated="id")
    joined = checked.left_join(repeating, [("id", "repeated")])
    no_document = ibis.cases((joined.repeated.notnull(), 5), else_=joined.no_document)
    return joined.select("id", "key", "no_source", no_document=no_document)


def sites(tables: Tables) -> ir.Table:
    """Return the site of each web page; no row where all pages have the same site.

    Columns: page, site (the registrable domain).
    """
    pages = tables["pages"]
    named = pages.filter(pages.domain.notnull()).group_by(page="id")
    of_pages = named.aggregate(site=pages.domain.min())
    number = of_pages.aggregate(number=of_pages.site.nunique())
    joined = of_pages.cross_join(number)
    return joined.filter(joined.number > 1).select("page", "site")


def dropped_pages(tables: Tables) -> ir.Table:
    """Count the pages that a filter drops, by reason; those of ``min_words`` are not counted.

    A page counts by the reason why it is not a document: a list without a lead is not counted as a
    list. Of pages of the same key, the first is read.
    """
    import ibis

    distinct = tables["pages"].group_by("id").aggregate(copies=lambda rows: rows.count())
    pages = tables["coded_pages"]
    names = {code: name.removeprefix("a ") for code, name in NO_DOCUMENT.items() if code > 1}
    reason = ibis.cases(*code_cases("", pages.no_document, names), else_=ibis.null("string"))
    again = count_copies(distinct, "page read twice")
    return ibis.union(count_reasons(pages.select(reason=reason)), again)
