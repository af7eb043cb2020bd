"""Counts anchors that look like near-duplicates or spam; none of them is dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .options import GraphOptions

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from ..work.sql.steps import Tables

__all__ = ["MANY_PAGES", "counts", "repeated_sentences"]

MANY_PAGES = 100
"""An anchor text that leads to more pages than this says little about any page ("here")."""


def repeated_sentences(tables: Tables) -> ir.Table:
    """Return the sentences with anchors that also stand, word for word, on another page.

    Columns: id, links (number of resolved anchors).
    """
    groups = tables["sentence_anchors"].select("id", links=lambda t: t.anchors.length())
    sentences = tables["sentences"].semi_join(groups, "id").select("id", "page", "text")
    places = sentences.select("text", "page").distinct()
    pages = places.group_by("text").aggregate(pages=places.count())
    repeated = pages.filter(pages.pages >= 2).select("text")
    ids = sentences.semi_join(repeated, "text").select("id").distinct()
    return groups.semi_join(ids, "id")


def counts(tables: Tables, *, options: GraphOptions) -> ir.Table:
    """Return figures about the resolved anchors, as rows (name, count).

    - ``repeated anchors``: anchors that repeat the text and the target of another anchor on the
      same page.
    - ``anchors in repeated sentences``: anchors in a sentence that also stands, word for word, on
      another page. Such a sentence most likely comes from a template.
    - ``texts of several pages``: anchor texts that lead to two pages or more.
    - ``texts of very many pages``: anchor texts that lead to more than `MANY_PAGES` pages.
    - ``anchors of very many pages``: the occurrences of such texts.
    - ``sites``: how many sites the pages are of, or 0 where it is one; only where links within a
      site are dropped.
    """
    import ibis

    anchors, texts = tables["anchors"], tables["anchor_texts"]
    alike = anchors.group_by("source", "normalized", "page").aggregate(copies=anchors.count())
    repeated = tables["repeated_sentences"]
    many = texts.pages > MANY_PAGES
    figures = {
        "repeated anchors": alike.aggregate(count=(alike.copies - 1).sum()),
        "anchors in repeated sentences": repeated.aggregate(count=repeated.links.sum()),
        "texts of several pages": texts.aggregate(count=(texts.pages >= 2).sum()),
        "texts of very many pages": texts.aggregate(count=many.sum()),
        "anchors of very many pages": texts.filter(many).aggregate(count=texts.occurrences.sum()),
    }
    if options.same_site_links == "drop":
        sites = tables["sites"]
        figures["sites"] = sites.aggregate(count=sites.site.nunique())
    rows = [
        table.select(name=ibis.literal(name), count=table["count"].fill_null(0))
        for name, table in figures.items()
    ]
    return ibis.union(*rows)
