"""Anchor texts and the pages that they lead to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .capped import lowest

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from ..work.sql.steps import Tables

__all__ = ["MAX_OCCURRENCES", "MAX_PAGES", "MAX_TARGETS", "ambiguous_texts", "anchor_texts"]

MAX_TARGETS = 1000
"""Of the pages that an anchor text leads to, this many are listed."""
MAX_PAGES = 100
"""Of the pages that an ambiguous text leads to, this many can be drawn."""
MAX_OCCURRENCES = 100
"""Of the anchors of one text and one page, this many can be drawn."""


def anchor_texts(tables: Tables) -> ir.Table:
    """Return every distinct anchor text with figures about its targets.

    Columns: id (the ``text_id`` of its anchors), normalized, occurrences, pages (number of distinct
    targets), sources (distinct pages that it stands on), largest (occurrences of its most frequent
    target), targets (the distinct pages that any link of this text leads to, those that a filter
    drops included, at most `MAX_TARGETS`, ascending).
    """
    anchors, links = tables["anchors"], tables["resolved_links"]
    pairs = anchors.group_by("text_id", "normalized", "page").aggregate(links=anchors.count())
    texts = pairs.group_by("text_id", "normalized").aggregate(
        occurrences=pairs.links.sum(), pages=pairs.count(), largest=pairs.links.max()
    )
    places = anchors.select("text_id", "source").distinct()
    sources = places.group_by(source_text="text_id").aggregate(sources=places.count())
    leads_to = links.filter(links.page.notnull()).select("text_id", "page").distinct()
    few = lowest(leads_to, "text_id", "page", MAX_TARGETS)
    targets = few.group_by(target_text="text_id").aggregate(targets=few.page.collect())
    joined = texts.inner_join(sources, [("text_id", "source_text")])
    joined = joined.inner_join(targets, [("text_id", "target_text")])
    return joined.select(
        "normalized",
        "occurrences",
        "pages",
        "sources",
        "largest",
        id="text_id",
        targets=joined.targets.sort(),
    )


def ambiguous_texts(
    tables: Tables, *, max_pages: int = MAX_PAGES, max_occurrences: int = MAX_OCCURRENCES
) -> ir.Table:
    """Return the anchor texts that lead to two pages or more, with anchors of each page.

    Columns: id (the ``text_id``), pages (distinct targets, ascending), counts (occurrences of each
    page), anchors and anchor_pages (the page of each anchor), which are sorted by page and then by
    anchor.

    Args:
        tables: the stage's tables.
        max_pages: the most pages of one text.
        max_occurrences: the most anchors of one text and one page.
    """
    import ibis

    anchors = tables["anchors"]
    pairs = anchors.group_by("text_id", "page").aggregate(links=anchors.count())
    by_text = ibis.window(group_by="text_id")
    pairs = pairs.mutate(targets=pairs.count().over(by_text))
    several = pairs.filter(pairs.targets >= 2).select("text_id", "page", "links")
    few = lowest(several, "text_id", "page", max_pages)
    target = ibis.struct({"page": few.page, "links": few.links})
    texts = few.group_by(id="text_id").aggregate(places=target.collect())
    texts = texts.mutate(places=texts.places.sort())
    occurrences = anchors.select("text_id", "page", anchor="id").semi_join(
        few.view(), ["text_id", "page"]
    )
    by_pair = ibis.window(group_by=["text_id", "page"], order_by="anchor")
    occurrences = occurrences.mutate(rank=ibis.row_number().over(by_pair))
    occurrences = occurrences.filter(occurrences["rank"] < max_occurrences)
    place = ibis.struct({"page": occurrences.page, "anchor": occurrences.anchor})
    listed = occurrences.group_by("text_id").aggregate(drawn=place.collect())
    joined = texts.inner_join(listed, [("id", "text_id")])
    drawn = joined.drawn.sort()
    return joined.select(
        "id",
        pages=joined.places.map(lambda place: place["page"]),
        counts=joined.places.map(lambda place: place.links),
        anchors=drawn.map(lambda place: place.anchor),
        anchor_pages=drawn.map(lambda place: place["page"]),
    )
