"""Links between kept pages, with the reason why any other is dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .functional import FUNCTIONAL_ANCHORS
from .options import GraphOptions
from .pages import NO_DOCUMENT, NO_SOURCE, reasons

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from ..engine import Tables


_PRIME = 2**31 - 1
"""A prime is coprime to any number of parts, by which ids are also taken."""


def double_links(tables: Tables) -> ir.Table:
    """Ids of links that stand in the table more than once: their page was read twice."""
    links = tables["links"]
    numbers = links.group_by("id").aggregate(copies=links.count())
    return numbers.filter(numbers.copies > 1).select("id")


def resolved_links(tables: Tables, *, options: GraphOptions) -> ir.Table:
    """All links with their target page, or with the reason why they are dropped.

    A filter counts only what nothing else would have dropped.
    """
    import ibis
    from ibis import _

    sentences = tables["sentences"]
    sources = sentences.group_by("id").aggregate(source=sentences.page.min())
    sources = sources.select("source", sentence="id")
    origin = tables["kept"].select("no_source", source="id")
    target = tables["titles"].select("title", "page", "no_document")
    links = _numbered_links(tables).left_join(target, [("target", "title")])
    joined = links.inner_join(sources, "sentence").left_join(origin, "source")
    if options.title_anchors < 1:
        joined = joined.left_join(title_anchors(tables), [("page", "of"), ("normalised", "text")])
    reason = ibis.cases(
        (_.copy > 0, "link read twice"),
        (_.region.notnull(), "link in a header, footer or navigation"),
        (_.page.isnull(), "link to a missing page"),
        (_.page == _.source, "link to its own page"),
        *reasons("link to ", _.no_document, NO_DOCUMENT),
        *reasons("link from ", _.no_source, NO_SOURCE),
        *_text_reasons(options),
        else_=ibis.null("string"),
    )
    return joined.select(
        "id", "sentence", "start", "end", "normalised", "page", "source", reason=reason
    )


def _text_reasons(options: GraphOptions) -> list[tuple]:
    """Cases by the links' texts."""
    from ibis import _

    cases: list[tuple] = []
    if options.functional_anchors == "drop":
        functional = _.normalised.isin(sorted(FUNCTIONAL_ANCHORS))
        cases.append((functional, "link whose text is functional"))
    if options.title_anchors < 1:
        kept = _.id % _PRIME < round(options.title_anchors * _PRIME)
        cases.append((_.text.notnull() & ~kept, "link whose text is the title of its page"))
    return cases


def title_anchors(tables: Tables) -> ir.Table:
    """Normalised texts that repeat a page's title: of (the page's id), text."""
    pages = tables["pages"]
    return pages.select(of="id", text=pages.title_anchors.unnest()).distinct()


def _numbered_links(tables: Tables) -> ir.Table:
    """Links with the number of the copy, which is above 0 for the second of one id and so on."""
    import ibis

    links = tables["links"].select(
        "id", "sentence", "start", "end", "normalised", "target", "region"
    )
    double = tables["double_links"]
    once = links.anti_join(double, "id").mutate(copy=ibis.literal(0, "int64"))
    copies = ibis.window(group_by="id", order_by=["target", "region", "normalised"])
    several = links.semi_join(double, "id").mutate(copy=ibis.row_number().over(copies))
    return ibis.union(once, several)


def dropped_links(tables: Tables) -> ir.Table:
    """Numbers of dropped links by reason."""
    dropped = tables["resolved"].filter(lambda t: t.reason.notnull())
    return dropped.group_by("reason").aggregate(count=dropped.count())


def resolved_anchors(tables: Tables) -> ir.Table:
    """Links that lead from a kept page to another: id, sentence, span, anchor text, page."""
    kept = tables["resolved"].filter(lambda t: t.reason.isnull())
    return kept.select("id", "sentence", "start", "end", "normalised", "page", "source")


def anchors_by_sentence(tables: Tables) -> ir.Table:
    """The resolved anchors of every sentence, in reading order.

    Columns: id (of the sentence), anchors and pages (equally long lists), targets (distinct pages).
    """
    import ibis

    anchors = tables["anchors"]
    place = ibis.struct({"start": anchors.start, "id": anchors.id, "page": anchors.page})
    groups = anchors.group_by(id="sentence").aggregate(places=place.collect())
    places = groups.places.sort()
    pages = places.map(lambda place: place["page"])
    return groups.select(
        "id",
        anchors=places.map(lambda place: place.id),
        pages=pages,
        targets=pages.unique().length(),
    )


def documents(tables: Tables) -> ir.Table:
    """Pages that may be a document.

    Columns: id, in_links (resolved links that lead to it), sources (distinct pages they stand on).
    """
    anchors = tables["anchors"]
    linking = anchors.group_by("page", "source").aggregate(links=anchors.count())
    numbers = linking.group_by("page").aggregate(
        in_links=linking.links.sum(), sources=linking.count()
    )
    fit = tables["kept"].filter(lambda t: t.no_document == 0).select("id")
    joined = fit.left_join(numbers, [("id", "page")])
    return joined.select(
        "id", in_links=joined.in_links.fill_null(0), sources=joined.sources.fill_null(0)
    )
