"""Which pages may be a source of links, and which a document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .options import GraphOptions

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from ..engine import Tables

NO_SOURCE = {
    1: "a page that is too short",
    2: "a disambiguation page",
    3: "a list page",
}
"""Why a page is no source of links; 0 where it is one."""
NO_DOCUMENT = {
    1: "a page that is too short or has no lead",
    2: "a disambiguation page",
    3: "a list page",
    4: "a page with too short a lead",
    5: "a page whose lead nearly repeats another's",
}
"""Why a page is no document; 0 where it is one."""
_KINDS = {2: "disambiguation", 3: "list"}


def fit_pages(tables: Tables, *, options: GraphOptions) -> ir.Table:
    """Pages by id with codes: `NO_SOURCE` and `NO_DOCUMENT`, but for near-duplicates.

    A page of which the source does not hold the whole has no word count and is long enough. Of a
    page that was read twice, the fitter version counts.

    Columns: id, key, no_source, no_document.
    """
    import ibis

    pages = tables["pages"]
    long_enough = pages.words.isnull() | (pages.words >= options.min_words)
    kinds = [(pages.kind == _KINDS[code], code) for code in _dropped_kinds(options)]
    short_lead = [(pages.lead_words < options.min_lead_words, 4)] if options.min_lead_words else []
    no_source = ibis.cases((~long_enough, 1), *kinds, else_=0)
    no_document = ibis.cases((~long_enough | (pages.lead == ""), 1), *kinds, *short_lead, else_=0)
    coded = pages.select("id", "key", no_source=no_source, no_document=no_document)
    return coded.group_by("id", "key").aggregate(
        no_source=coded.no_source.min(), no_document=coded.no_document.min()
    )


def _dropped_kinds(options: GraphOptions) -> list[int]:
    asked = {2: options.disambiguation_pages, 3: options.list_pages}
    return [code for code, choice in asked.items() if choice == "drop"]


def near_duplicates(tables: Tables) -> ir.Table:
    """Ids of documents that share a band with a document of lower id."""
    pages, fit = tables["pages"], tables["fit"]
    documents = fit.filter(fit.no_document == 0).select("id")
    banded = pages.select("id", band=pages.lead_bands.unnest()).distinct()
    banded = banded.semi_join(documents, "id")
    firsts = banded.group_by(shared="band").aggregate(first=banded.id.min())
    joined = banded.inner_join(firsts, [("band", "shared")])
    return joined.filter(joined.first < joined.id).select("id").distinct()


def kept_pages(tables: Tables, *, options: GraphOptions) -> ir.Table:
    """Pages by id with codes: `NO_SOURCE` and `NO_DOCUMENT`.

    Columns: id, key, no_source, no_document.
    """
    import ibis

    fit = tables["fit"]
    if options.near_duplicate_leads == "keep":
        return fit
    repeating = tables["near_duplicates"].select(repeated="id")
    joined = fit.left_join(repeating, [("id", "repeated")])
    no_document = ibis.cases((joined.repeated.notnull(), 5), else_=joined.no_document)
    return joined.select("id", "key", "no_source", no_document=no_document)


def dropped_pages(tables: Tables) -> ir.Table:
    """Numbers of pages that a filter left out, by reason; those of ``min_words`` are not counted.

    A page counts by what makes it no document: so a list without a lead does not.
    """
    import ibis

    kept = tables["kept"].filter(lambda t: t.no_document > 1)
    names = {code: name.removeprefix("a ") for code, name in NO_DOCUMENT.items()}
    reason = ibis.cases(*reasons("", kept.no_document, names), else_=ibis.null("string"))
    named = kept.select(reason=reason)
    return named.group_by("reason").aggregate(count=named.count())


def reasons(before: str, code: ir.IntegerValue, names: dict[int, str]) -> list[tuple]:
    """Cases that turn a code into a reason, such as "link to a list page"."""
    return [(code == number, before + name) for number, name in names.items()]
