"""How many anchors look like near-duplicates or spam. Nothing is dropped for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from ..engine import Tables

MANY_PAGES = 100
"""An anchor text that leads to more pages than this says little about any ("here")."""


def repeated_sentences(tables: Tables) -> ir.Table:
    """Sentences with anchors whose text stands word for word on another page as well.

    Columns: id, links (number of resolved anchors).
    """
    groups = tables["sentence_anchors"].select("id", links=lambda t: t.anchors.length())
    sentences = tables["sentences"].semi_join(groups, "id").select("id", "page", "text")
    standing = sentences.select("text", "page").distinct()
    pages = standing.group_by("text").aggregate(pages=standing.count())
    repeated = pages.filter(pages.pages >= 2).select("text")
    found = sentences.semi_join(repeated, "text").select("id").distinct()
    return groups.semi_join(found, "id")


def counts(tables: Tables) -> ir.Table:
    """Figures on the resolved anchors, as rows (name, count).

    ``repeated anchors``: those beyond the first with one text and one target on one page.
    ``anchors in repeated sentences``: those in a sentence whose text stands word for word on
    another page as well, so most likely made by a template.
    ``texts of several pages``: anchor texts that lead to two pages or more.
    ``texts of very many pages``: anchor texts that lead to more than `MANY_PAGES` pages.
    ``anchors of very many pages``: the occurrences of such texts.
    """
    import ibis

    anchors, texts = tables["anchors"], tables["anchor_texts"]
    alike = anchors.group_by("source", "normalised", "page").aggregate(copies=anchors.count())
    repeated = tables["repeated_sentences"]
    many = texts.pages > MANY_PAGES
    figures = {
        "repeated anchors": alike.aggregate(count=(alike.copies - 1).sum()),
        "anchors in repeated sentences": repeated.aggregate(count=repeated.links.sum()),
        "texts of several pages": texts.aggregate(count=(texts.pages >= 2).sum()),
        "texts of very many pages": texts.aggregate(count=many.sum()),
        "anchors of very many pages": texts.filter(many).aggregate(count=texts.occurrences.sum()),
    }
    rows = [
        table.select(name=ibis.literal(name), count=table["count"].fill_null(0))
        for name, table in figures.items()
    ]
    return ibis.union(*rows)
