"""The terms of a build that name pages, and its pages with the anchor texts of their in-links."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...graph.options import GraphOptions
from ...graph.pages import checked_pages, coded_pages
from ...graph.reasons import count_reasons
from ...graph.redirects import title_steps
from ...work.manifest import read_manifest
from ...work.sql.steps import Step

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from ...work.sql.steps import Tables

__all__ = ["KINDS", "PAGES", "TERMS", "sources", "steps"]

KINDS = ("index", "redirect", "link", "anchor")
"""Where queries come from; of a query that comes from several, the first one names it."""
PAGES = "pages_with_anchor_texts"
TERMS = "terms"
_SOURCES = {
    "corpus": ("pages", "redirects", "links", "index_terms"),
    "graph": ("anchors", "held_out_links"),
}


def sources(directory: Path) -> dict[str, Path]:
    """List the tables of a build that are there and are read: their folders by name."""
    rows = {stage: read_manifest(directory / stage)["rows"] for stage in _SOURCES}
    return {
        name: directory / stage / name
        for stage, names in _SOURCES.items()
        for name in names
        if name in rows[stage] and any((directory / stage / name).glob("*.parquet"))
    }


def steps(kinds: Sequence[str], tables: Sequence[str]) -> list[Step]:
    """Return the steps that make the tables `TERMS` and `PAGES`.

    ``terms`` has a row for each text of a kind and each page that it names: kind, text, page,
    occurrences, seen (whether a link that training sees has this text).
    ``pages_with_anchor_texts`` has a row for each page, sorted by key: id, key, title, sections,
    anchor_texts (distinct normalized texts of resolved links to the page, each with its count).

    Args:
        kinds: some of `KINDS`.
        tables: the names of the tables that the build has.
    """
    kinds = [kind for kind in kinds if _BY_KIND[kind][0] in tables]
    options = GraphOptions(min_words=0)
    terms = Step(TERMS, partial(_terms, kinds=kinds), order=("kind", "text", "page"))
    missing = Step("missing", _missing_targets, "drops")
    return [
        Step("checked_pages", partial(checked_pages, options=options), "temporary"),
        Step("coded_pages", partial(coded_pages, options=options), "temporary"),
        *title_steps(),
        *([missing] if "index" in kinds else []),
        *([terms] if kinds else []),
        Step(PAGES, _pages, order=("key",)),
    ]


def _terms(tables: Tables, *, kinds: Sequence[str]) -> ir.Table:
    import ibis

    return ibis.union(*(_BY_KIND[kind][1](tables) for kind in kinds))


def _index_terms(tables: Tables) -> ir.Table:
    terms, titles = tables["index_terms"], tables["titles"].select("title", "page")
    joined = terms.inner_join(titles, [("target", "title")])
    return _counted(joined.select("page", text="term"), "index")


def _missing_targets(tables: Tables) -> ir.Table:
    import ibis

    terms = tables["index_terms"].anti_join(tables["titles"], [("target", "title")])
    return count_reasons(terms.select(reason=ibis.literal("index term of a missing page")))


def _redirects(tables: Tables) -> ir.Table:
    titles = tables["titles"].anti_join(tables["coded_pages"], [("title", "key")])
    return _counted(titles.select("page", text="title"), "redirect")


def _with_texts(links: ir.Table, tables: Tables) -> ir.Table:
    texts = tables["links"].group_by(link="id").aggregate(text=lambda t: t.anchor.min())
    return links.inner_join(texts, [("id", "link")])


def _anchors(tables: Tables) -> ir.Table:
    return _counted(_with_texts(tables["anchors"], tables).select("page", "text"), "anchor")


def _held_out_links(tables: Tables) -> ir.Table:
    joined = _with_texts(tables["held_out_links"], tables)
    visible = tables["anchors"].select(visible="text_id").distinct()
    joined = joined.left_join(visible, [("text_id", "visible")])
    return _counted(joined.select("page", "text", seen=joined.visible.notnull()), "link")


_BY_KIND = {
    "index": ("index_terms", _index_terms),
    "redirect": ("redirects", _redirects),
    "link": ("held_out_links", _held_out_links),
    "anchor": ("anchors", _anchors),
}
"""The table that each kind needs, and what makes its terms."""


def _counted(rows: ir.Table, kind: str) -> ir.Table:
    import ibis

    if "seen" not in rows.columns:
        rows = rows.mutate(seen=ibis.literal(False))
    counted = rows.group_by("text", "page").aggregate(
        occurrences=rows.count(), seen=rows.seen.any()
    )
    return counted.select("text", "page", "occurrences", "seen", kind=ibis.literal(kind))


def _pages(tables: Tables) -> ir.Table:
    import ibis

    pages, anchors = tables["pages"], tables["anchors"]
    copies = ibis.window(group_by="id", order_by=["title", "lead"])
    pages = pages.select("id", "key", "title", "lead", "sections")
    pages = pages.mutate(copy=ibis.row_number().over(copies))
    pages = pages.filter(pages["copy"] == 0).drop("copy", "lead")
    texts = anchors.group_by("page", "normalized").aggregate(count=anchors.count())
    text = ibis.struct({"text": texts.normalized, "count": texts["count"]})
    listed = texts.group_by("page").aggregate(anchor_texts=text.collect())
    joined = pages.left_join(listed, [("id", "page")])
    return joined.select("id", "key", "title", "sections", anchor_texts=joined.anchor_texts.sort())
