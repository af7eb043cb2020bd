"""The graph stage resolves the links of the stage ``corpus``.

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

Held-out links resolve, but no task learns from them: no table but the last one has them, apart from
the columns ``linked`` and ``targets``, which list pages that are not negatives. There is such a
table only where links are held out. The ``counts`` of the manifest say how many anchors look like
near-duplicates or spam: see `harp_plugin.graph.quality.counts`.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

from ..errors import HarpError
from ..work.build_stage import BuildRequest, BuildStage, StageOptions
from ..work.sql.steps import PACKAGES, Step, run_steps
from ..work.stage import Stage
from .anchor_texts import ambiguous_texts, anchor_texts
from .links import (
    anchors_by_sentence,
    documents,
    double_links,
    dropped_links,
    dropped_see_also,
    held_out_links,
    resolved_anchors,
    resolved_links,
    resolved_see_also,
    see_also,
)
from .options import GraphOptions
from .page_links import page_links
from .pages import checked_pages, coded_pages, dropped_pages, near_duplicates, sites
from .quality import counts, repeated_sentences
from .redirects import dropped_redirects, title_steps

__all__ = ["build_graph", "steps"]

logger = logging.getLogger(__name__)


def _options(request: BuildRequest) -> StageOptions:
    return StageOptions(request.of(GraphOptions).deciding, packages=PACKAGES)


def _resolve_links(stage: Stage, request: BuildRequest) -> dict[str, Any]:
    """Run the steps of the stage.

    Raises:
        HarpError: no page can be a document, or the engine fails.
    """
    corpus, options = request.directory / "corpus", request.of(GraphOptions)
    sources = {name: corpus / name for name in ("pages", "sentences", "links", "redirects")}
    counted = run_steps(
        *(stage, sources, steps(options), request.engine),
        workers=request.workers,
        quiet=request.quiet,
    )
    if counted.get("sites") == 0:
        logger.warning(
            "--same-site-links drop drops nothing: all pages are of one site, or no page has a URL"
        )
    rows, drops = stage.counts()
    if not rows["documents"] and not drops:
        raise HarpError(
            f"no page of {corpus} can be a document: each has fewer than {options.min_words} words,"
            " or no lead: lower --min-words, or check the source"
        )
    return {"needed": "documents", "counts": counted}


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


build_graph = BuildStage("graph", ("corpus",), _options, _resolve_links)
