"""Resolves links and see-also links to pages, or gives the reason why they are dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..corpus.boilerplate import REFERENCES
from ..corpus.pages import HATNOTE
from ..sampling import stable_id
from .functional import FUNCTIONAL_ANCHORS
from .options import GraphOptions
from .reasons import (
    HELD_OUT,
    MISSING,
    NO_DOCUMENT,
    NO_SOURCE,
    OTHER_SITE,
    SAME_SITE,
    TITLE_LINK,
    code_cases,
    count_reasons,
)

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from ..work.sql.steps import Tables

__all__ = [
    "anchors_by_sentence",
    "documents",
    "double_links",
    "dropped_links",
    "dropped_see_also",
    "held_out_links",
    "resolved_anchors",
    "resolved_links",
    "resolved_see_also",
    "see_also",
    "title_anchors",
]

_PRIME = 2**31 - 1
"""The modulus for fractions of ids; a prime is coprime to the other moduli that divide ids."""
_WEB = "^https?://"
_MOST_ANCHOR_WORDS = 64
"""Longer texts are no queries, as Anchor-DR's authors found."""


def double_links(tables: Tables) -> ir.Table:
    """Return the ids of links that the table holds more than once: their page was read twice."""
    links = tables["links"]
    numbers = links.group_by("id").aggregate(copies=links.count())
    return numbers.filter(numbers.copies > 1).select("id")


def resolved_links(tables: Tables, *, options: GraphOptions) -> ir.Table:
    """Return all links with their target page, or with the reason why they are dropped.

    A filter counts only the links that nothing else would have dropped.
    """
    import ibis
    from ibis import _

    sentences = tables["sentences"]
    sources = sentences.group_by("id").aggregate(source=sentences.page.min())
    sources = sources.select("source", sentence="id")
    pages = tables["coded_pages"]
    origin = pages.select("no_source", source="id", on_web=pages.key.re_search(_WEB))
    target = tables["titles"].select("title", "page", "no_document")
    links = _numbered_links(tables).left_join(target, [("target", "title")])
    joined = links.inner_join(sources, "sentence").left_join(origin, "source")
    if options.same_site_links == "drop":
        joined = _with_sites(joined, tables["sites"])
    if options.title_anchors < 1:
        joined = joined.left_join(
            title_anchors(tables), [("page", "titled"), ("normalized", "title_text")]
        )
    reason = ibis.cases(
        (_.copy > 0, "link read twice"),
        (_.region == HATNOTE, "link in a hatnote"),
        (_.region == REFERENCES, "link in a section of references or web links"),
        (_.region.notnull(), "link in a header, footer or navigation"),
        (_.page.isnull() & ~_.on_web & _.target.re_search(_WEB), OTHER_SITE),
        (_.page.isnull(), MISSING),
        (_.page == _.source, "link to its own page"),
        *code_cases("link to ", _.no_document, NO_DOCUMENT),
        *code_cases("link from ", _.no_source, NO_SOURCE),
        *_link_reasons(options),
        *_held_out(_.page if options.held_out_by == "page" else _.text_id, HELD_OUT, options),
        else_=ibis.null("string"),
    )
    return joined.select(
        "id", "sentence", "start", "end", "normalized", "text_id", "page", "source", reason=reason
    )


def _with_sites(links: ir.Table, sites: ir.Table) -> ir.Table:
    """Add the columns ``site``, of the page that a link leads to, and ``source_site``."""
    of_targets = sites.rename(site_page="page")
    of_sources = sites.select(source_page="page", source_site="site")
    joined = links.left_join(of_targets, [("page", "site_page")])
    return joined.left_join(of_sources, [("source", "source_page")])


def _link_reasons(options: GraphOptions) -> list[tuple]:
    """Return the cases that depend on the sites and the text of a link."""
    from ibis import _

    cases: list[tuple] = []
    if options.same_site_links == "drop":
        cases.append((_.site == _.source_site, SAME_SITE))
    if options.functional_anchors == "drop":
        functional = _.normalized.isin(sorted(FUNCTIONAL_ANCHORS))
        cases.append((functional, "link whose text is functional"))
    if options.numeric_anchors == "drop":
        cases.append((~_.normalized.re_search(r"\p{L}"), "link whose text has no letter"))
    if options.long_anchors == "drop":
        spaces = _.normalized.length() - _.normalized.replace(" ", "").length()
        reason = f"link whose text has more than {_MOST_ANCHOR_WORDS} words"
        cases.append((spaces >= _MOST_ANCHOR_WORDS, reason))
    if options.title_anchors < 1:
        in_fraction = _.id % _PRIME < round(options.title_anchors * _PRIME)
        cases.append((_.title_text.notnull() & ~in_fraction, TITLE_LINK))
    return cases


def _held_out(id: ir.IntegerColumn, reason: str, options: GraphOptions) -> list[tuple]:
    """Return the case of links whose page or text is held out, if links are.

    A page or a text is held out with all its links. A larger fraction holds out more of them, and
    another seed others.
    """
    if not options.held_out_links:
        return []
    factor = 1 + stable_id("held-out links", options.seed) % (_PRIME - 1)
    return [((id % _PRIME) * factor % _PRIME < round(options.held_out_links * _PRIME), reason)]


def title_anchors(tables: Tables) -> ir.Table:
    """Return the normalized texts that repeat the title of a page.

    Columns: titled (the id of the page), title_text.
    """
    pages = tables["pages"]
    return pages.select(titled="id", title_text=pages.title_anchors.unnest()).distinct()


def _numbered_links(tables: Tables) -> ir.Table:
    """Return links with the number of their copy: 0 for the first link of an id, then 1, 2, ..."""
    import ibis

    links, double = tables["links"].drop("anchor"), tables["double_links"]
    once = links.anti_join(double, "id").mutate(copy=ibis.literal(0, "int64"))
    copies = ibis.window(group_by="id", order_by=["target", "region", "normalized"])
    repeated = links.semi_join(double, "id").mutate(copy=ibis.row_number().over(copies))
    return ibis.union(once, repeated)


def dropped_links(tables: Tables) -> ir.Table:
    """Count the dropped links by reason."""
    return count_reasons(tables["resolved_links"])


def resolved_anchors(tables: Tables) -> ir.Table:
    """Return the links that are not dropped.

    Columns: id, sentence, start, end, normalized, text_id, page, source.
    """
    links = tables["resolved_links"]
    return links.filter(links.reason.isnull()).drop("reason")


def anchors_by_sentence(tables: Tables) -> ir.Table:
    """Return the resolved anchors of every sentence, in reading order.

    Columns: id (of the sentence), anchors and pages (equally long lists), targets (number of
    distinct pages), linked (distinct pages of all links of the sentence that resolve, those that a
    filter drops included, ascending).
    """
    import ibis

    anchors, links = tables["anchors"], tables["resolved_links"]
    place = ibis.struct({"start": anchors.start, "id": anchors.id, "page": anchors.page})
    groups = anchors.group_by(id="sentence").aggregate(places=place.collect())
    places = groups.places.sort()
    pages = places.map(lambda place: place["page"])
    listed = groups.select(
        "id",
        anchors=places.map(lambda place: place.id),
        pages=pages,
        targets=pages.unique().length(),
    )
    pairs = links.filter(links.page.notnull()).select("sentence", "page").distinct()
    linked = pairs.group_by("sentence").aggregate(linked=pairs.page.collect())
    joined = listed.inner_join(linked, [("id", "sentence")])
    return joined.select("id", "anchors", "pages", "targets", linked=joined.linked.sort())


def documents(tables: Tables) -> ir.Table:
    """Return the pages that may be a document.

    Columns: id, in_links (resolved links to the page), sources (distinct pages with such links).
    """
    anchors = tables["anchors"]
    linking = anchors.group_by("page", "source").aggregate(links=anchors.count())
    numbers = linking.group_by("page").aggregate(
        in_links=linking.links.sum(), sources=linking.count()
    )
    pages = tables["coded_pages"].filter(lambda t: t.no_document == 0).select("id")
    joined = pages.left_join(numbers, [("id", "page")])
    return joined.select(
        "id", in_links=joined.in_links.fill_null(0), sources=joined.sources.fill_null(0)
    )


def held_out_links(tables: Tables) -> ir.Table:
    """Return the links that are held out, and that nothing else would have dropped.

    Columns: those of the table ``anchors``.
    """
    links = tables["resolved_links"]
    return links.filter(links.reason == HELD_OUT).drop("reason")


def resolved_see_also(tables: Tables, *, options: GraphOptions) -> ir.Table:
    """Return all see-also links with their targets, or with the reason why they are dropped."""
    import ibis
    from ibis import _

    pages, titles = tables["pages"], tables["titles"]
    listed = pages.select(source="id", key=pages.see_also.unnest()).distinct()
    coded = tables["coded_pages"]
    origin = coded.select(source="id", unfit_source="no_source", on_web=coded.key.re_search(_WEB))
    target = titles.select("title", target="page", unfit_target="no_source")
    joined = listed.left_join(target, [("key", "title")]).left_join(origin, "source")
    same = ibis.window(group_by=["source", "target"], order_by="key")
    joined = joined.mutate(repeated=ibis.row_number().over(same))
    held_out: list[tuple] = []
    if options.held_out_by == "page":
        held_out = _held_out(_.target, "see-also link to a held-out page", options)
    reason = ibis.cases(
        (_.target.isnull() & ~_.on_web & _.key.re_search(_WEB), f"see-also {OTHER_SITE}"),
        (_.target.isnull(), "see-also link to a missing page"),
        (_.target == _.source, "see-also link to its own page"),
        *code_cases("see-also link to ", _.unfit_target, NO_SOURCE),
        *code_cases("see-also link from ", _.unfit_source, NO_SOURCE),
        (_.repeated > 0, "see-also link that repeats another"),
        *held_out,
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
