"""Stage 2: links become a resolved link graph.

Pure Ibis expressions without I/O, and the stage that runs them. Texts were normalised when they
were read; here are only equality, integers, windows and lists.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .engine import EngineOptions, Step, run_steps
from .storage import Stage, read_manifest

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from .engine import Tables

_REDIRECT_HOPS = 4


@dataclass
class GraphOptions:
    """Which pages and links count."""

    min_words: int = field(
        default=100,
        metadata={"help": "Articles with fewer words are left out (the paper: 100)."},
    )


def build_graph(
    directory: Path,
    options: GraphOptions,
    engine: EngineOptions | None = None,
    *,
    workers: int = 1,
) -> dict[str, Any]:
    """Resolve the links of the finished corpus stage in ``directory``.

    Writes ``anchors`` (resolved links), ``sentences`` (their anchors grouped by sentence) and
    ``documents`` (pages that may be a document, with their number of in-links).

    Returns:
        The stage's manifest.

    Raises:
        HarpError: the corpus is unfinished, nothing resolves, or the engine fails.
    """
    corpus = directory / "corpus"
    inputs = {"corpus": read_manifest(corpus)["fingerprint"]}
    packages = ("ibis-framework", "duckdb", "pyarrow")
    stage = Stage(directory / "graph", asdict(options), inputs, packages)
    if stage.finished:
        return read_manifest(stage.folder)
    stage.start()
    sources = {name: corpus / name for name in ("pages", "sentences", "links", "redirects")}
    steps = [
        Step("kept", partial(kept_pages, min_words=options.min_words), "temporary"),
        Step("resolved", resolved_links, "temporary"),
        Step("drops", dropped_links, "drops"),
        Step("anchors", resolved_anchors),
        Step("sentence_anchors", anchors_by_sentence),
        Step("documents", documents),
    ]
    engine = engine or EngineOptions()
    run_steps(stage, sources, steps, memory=engine.memory, workers=workers)
    return stage.finish(needed="anchors")


def kept_pages(tables: Tables, *, min_words: int) -> ir.Table:
    """Pages by id with flags: long enough as a source of links, and fit to be a document.

    A page of which the source does not hold the whole has no word count and is long enough.
    """
    pages = tables["pages"]
    long_enough = pages.words.isnull() | (pages.words >= min_words)
    return pages.group_by("id", "key").aggregate(
        is_source=long_enough.any(),
        is_document=(long_enough & (pages.lead != "")).any(),
    )


def final_redirects(redirects: ir.Table) -> ir.Table:
    """Redirects followed to their ends, at most four hops further; loops are left out."""
    first = redirects.group_by("source").aggregate(target=redirects.target.min())
    followed = first
    for hop in range(_REDIRECT_HOPS):
        via, beyond = f"via{hop}", f"beyond{hop}"
        further = first.view().rename({via: "source", beyond: "target"})
        followed = followed.left_join(further, [("target", via)])
        followed = followed.mutate(target=followed[beyond].fill_null(followed.target))
        followed = followed.select("source", "target")
    return followed.anti_join(first.view().select(via="source"), [("target", "via")])


def resolved_links(tables: Tables) -> ir.Table:
    """All links with their target page, or with the reason why they are dropped."""
    import ibis
    from ibis import _

    links = tables["links"].distinct()
    sentences = tables["sentences"]
    source = sentences.group_by("id").aggregate(source=sentences.page.min())
    source = source.select(sentence="id", source="source")
    kept = tables["kept"]
    titles = tables["redirects"].anti_join(kept, [("source", "key")])
    redirects = final_redirects(titles).select(title="source", beyond="target")
    target = kept.select(key="key", page="id", is_document="is_document")
    origin = kept.view().select(source="id", is_source="is_source")
    joined = links.left_join(redirects, [("target", "title")])
    joined = joined.mutate(final=joined.beyond.fill_null(joined.target))
    joined = joined.left_join(target, [("final", "key")])
    joined = joined.inner_join(source, "sentence").left_join(origin, "source")
    reason = ibis.cases(
        (_.page.isnull(), "link to a missing page"),
        (_.page == _.source, "link to its own page"),
        (~_.is_document, "link to a page that is too short or has no lead"),
        (~_.is_source, "link from a page that is too short"),
        else_=ibis.null("string"),
    )
    return joined.select(
        "id", "sentence", "start", "end", "normalised", "page", "source", reason=reason
    )


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
    anchors = tables["anchors"]
    return anchors.group_by(id="sentence").aggregate(
        anchors=anchors.id.collect(order_by=[anchors.start, anchors.id]),
        pages=anchors.page.collect(order_by=[anchors.start, anchors.id]),
        targets=anchors.page.nunique(),
    )


def documents(tables: Tables) -> ir.Table:
    """Pages that may be a document, with their number of in-links."""
    anchors = tables["anchors"]
    in_links = anchors.group_by("page").aggregate(in_links=anchors.count())
    fit = tables["kept"].filter(lambda t: t.is_document).select("id")
    joined = fit.left_join(in_links, [("id", "page")])
    return joined.select("id", in_links=joined.in_links.fill_null(0))


def ambiguous_anchors(anchors: ir.Table, max_pages: int, max_occurrences: int) -> ir.Table:
    """Occurrences of anchor texts that lead to two pages or more, with all those pages.

    Both caps take the lowest ids; ids are hashes, so this is a random draw. The pages are capped
    before they are collected.

    Columns: id (of the anchor), pages (distinct, ascending), counts (occurrences of each page).
    """
    import ibis

    pairs = anchors.group_by("normalised", "page").aggregate(count=anchors.count())
    by_text = ibis.window(group_by="normalised", order_by="page")
    pairs = pairs.mutate(rank=ibis.row_number().over(by_text)).filter(lambda t: t.rank < max_pages)
    groups = pairs.group_by("normalised").aggregate(
        pages=pairs.page.collect(order_by=pairs.page),
        counts=pairs["count"].collect(order_by=pairs.page),
    )
    groups = groups.filter(groups.pages.length() >= 2)
    by_id = ibis.window(group_by="normalised", order_by="id")
    capped = anchors.mutate(rank=ibis.row_number().over(by_id))
    capped = capped.filter(capped.rank < max_occurrences)
    return capped.inner_join(groups, "normalised").select("id", "pages", "counts")
