"""The graph stage, which resolves links."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path
from typing import Any

from ..work.manifest import read_content, read_manifest
from ..work.provenance import OverwriteRules
from ..work.sql.options import EngineOptions
from ..work.sql.steps import PACKAGES, Step, run_steps
from ..work.stage import Stage
from .anchor_texts import ambiguous_texts, anchor_texts
from .held_out import held_out_links
from .links import (
    anchors_by_sentence,
    documents,
    double_links,
    dropped_links,
    resolved_anchors,
    resolved_links,
)
from .options import GraphOptions
from .page_links import page_links
from .pages import checked_pages, coded_pages, dropped_pages, near_duplicates, sites
from .quality import counts, repeated_sentences
from .redirects import dropped_redirects, title_steps
from .see_also import dropped_see_also, resolved_see_also, see_also

__all__ = ["build_graph", "graph_stage", "steps"]

logger = logging.getLogger(__name__)


def build_graph(
    directory: Path,
    options: GraphOptions,
    engine: EngineOptions | None = None,
    *,
    workers: int = 1,
    quiet: bool = True,
    rules: OverwriteRules | None = None,
) -> dict[str, Any]:
    """Resolve the links of the finished corpus stage in ``directory``.

    The stage writes these tables. Each is sorted by its id, ``see_also`` by source and target.

    | table | row |
    |---|---|
    | ``anchors`` | a resolved link: id, sentence, start, end, normalized, text_id, page, source |
    | ``sentence_anchors`` | the anchors of a sentence: id, anchors, pages, targets, linked |
    | ``page_links`` | the links on and to a page: id, anchors, targets, linked, sources |
    | ``documents`` | a page that may be a document: id, in_links, sources (distinct pages) |
    | ``anchor_texts`` | a distinct text: id, normalized, occurrences, pages, …, targets |
    | ``ambiguous_texts`` | a text of several pages: id, pages, counts, anchors, anchor_pages |
    | ``see_also`` | a see-also link between two pages: source, target |
    | ``held_out_links`` | a link that no other table shows: the columns of ``anchors`` |

    Held-out links resolve, but no task learns from them: no table but the last one has them, apart
    from the columns ``linked`` and ``targets``, which list pages that are no negatives. There is
    such a table only where links are held out.

    The ``counts`` of the manifest say how many anchors look like near-duplicates or spam: see
    `harp_plugin.graph.quality.counts`.

    Args:
        directory: the folder of the build.
        options: which pages and links count.
        engine: the engine and its memory.
        workers: the number of threads of the engine.
        quiet: whether to show no progress bar.
        rules: what may be done with other work in the folder.

    Returns:
        The stage's manifest.

    Raises:
        HarpError: the corpus is unfinished or damaged, it has links and none resolves, the engine
            fails, or the folder holds other work or other files.
    """
    corpus = directory / "corpus"
    read_manifest(corpus)
    stage = graph_stage(directory, options, rules)
    if stage.is_finished():
        return read_manifest(stage.folder)
    stage.start()
    sources = {name: corpus / name for name in ("pages", "sentences", "links", "redirects")}
    figures = run_steps(stage, sources, steps(options), engine, workers=workers, quiet=quiet)
    if figures.get("sites") == 0:
        logger.warning(
            "--same-site-links drop drops nothing: all pages are of one site, or no page has a URL"
        )
    has_links = read_manifest(corpus)["rows"]["links"] > 0
    return stage.finish(needed="anchors" if has_links else "documents", counts=figures)


def graph_stage(
    directory: Path, options: GraphOptions, rules: OverwriteRules | None = None
) -> Stage:
    """Return the stage of these options, not started; without a built corpus, it has no input."""
    inputs = read_content(directory, "corpus", needed=False)
    return Stage(directory / "graph", options.deciding, inputs, PACKAGES, rules=rules)


def steps(options: GraphOptions) -> list[Step]:
    """Return the steps of the stage in order."""
    return [
        Step("checked_pages", partial(checked_pages, options=options), "temporary"),
        Step("near_duplicates", near_duplicates, "temporary"),
        Step("coded_pages", partial(coded_pages, options=options), "temporary"),
        Step("page_drops", dropped_pages, "drops"),
        *title_steps(),
        Step("redirect_drops", dropped_redirects, "drops"),
        *([Step("sites", sites, "temporary")] if options.same_site_links == "drop" else []),
        Step("double_links", double_links, "temporary"),
        Step("resolved_links", partial(resolved_links, options=options), "temporary"),
        Step("link_drops", dropped_links, "drops"),
        Step("anchors", resolved_anchors),
        *([Step("held_out_links", held_out_links)] if options.held_out_links else []),
        Step("sentence_anchors", anchors_by_sentence),
        Step("documents", documents),
        Step("page_links", page_links),
        Step("anchor_texts", anchor_texts),
        Step("ambiguous_texts", ambiguous_texts),
        Step("resolved_see_also", partial(resolved_see_also, options=options), "temporary"),
        Step("see_also_drops", dropped_see_also, "drops"),
        Step("see_also", see_also, order=("source", "target")),
        Step("repeated_sentences", repeated_sentences, "temporary"),
        Step("counts", partial(counts, options=options), "counts"),
    ]
