"""The stage that resolves links."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from ..engine import PACKAGES, EngineOptions, Step, run_steps
from ..files.made_from import OverwriteRules
from ..storage import Stage, read_content, read_manifest
from .anchor_texts import anchor_texts
from .links import (
    anchors_by_sentence,
    documents,
    double_links,
    dropped_links,
    resolved_anchors,
    resolved_links,
)
from .options import GraphOptions
from .pages import dropped_pages, fit_pages, kept_pages, near_duplicates
from .quality import counts, repeated_sentences
from .redirects import doubled, dropped_redirects, first_redirects, titles
from .see_also import dropped_see_also, resolved_see_also, see_also


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

    Writes these tables; each is sorted by its id, ``see_also`` by source and target.

    | table | row |
    |---|---|
    | ``anchors`` | resolved link: id, sentence, start, end, normalised, page, source |
    | ``sentence_anchors`` | its anchors by sentence: id, anchors, pages, targets |
    | ``documents`` | page that may be a document: id, in_links, sources (distinct pages) |
    | ``anchor_texts`` | distinct text: id, normalised, occurrences, pages, sources, largest |
    | ``see_also`` | see-also link between pages: source, target |

    The manifest's ``counts`` tell how many anchors look like near-duplicates or spam: see
    `harp_plugin.graph.quality.counts`.

    Returns:
        The stage's manifest.

    Raises:
        HarpError: the corpus is unfinished or damaged, nothing resolves, the engine fails, or the
            folder holds other work or other files.
    """
    corpus = directory / "corpus"
    read_manifest(corpus)
    stage = graph_stage(directory, options, rules)
    if stage.is_finished():
        return read_manifest(stage.folder)
    stage.start()
    sources = {name: corpus / name for name in ("pages", "sentences", "links", "redirects")}
    found = run_steps(stage, sources, steps(options), engine, workers=workers, quiet=quiet)
    return stage.finish(needed="anchors", counts=found)


def graph_stage(
    directory: Path, options: GraphOptions, rules: OverwriteRules | None = None
) -> Stage:
    """The stage of these options, not started; its input is None while that is unfinished."""
    inputs = read_content(directory, "corpus", needed=False)
    return Stage(directory / "graph", asdict(options), inputs, PACKAGES, rules=rules)


def steps(options: GraphOptions) -> list[Step]:
    """The relational work of the stage."""
    return [
        Step("fit", partial(fit_pages, options=options), "temporary"),
        Step("near_duplicates", near_duplicates, "temporary"),
        Step("kept", partial(kept_pages, options=options), "temporary"),
        Step("page_drops", dropped_pages, "drops"),
        Step("redirects_1", first_redirects, "temporary"),
        *(
            Step(f"redirects_{2 * hops}", partial(doubled, name=f"redirects_{hops}"), "temporary")
            for hops in (1, 2, 4, 8)
        ),
        Step("titles", titles, "temporary"),
        Step("redirect_drops", dropped_redirects, "drops"),
        Step("double_links", double_links, "temporary"),
        Step("resolved", partial(resolved_links, options=options), "temporary"),
        Step("link_drops", dropped_links, "drops"),
        Step("anchors", resolved_anchors),
        Step("sentence_anchors", anchors_by_sentence),
        Step("documents", documents),
        Step("anchor_texts", anchor_texts),
        Step("resolved_see_also", resolved_see_also, "temporary"),
        Step("see_also_drops", dropped_see_also, "drops"),
        Step("see_also", see_also, order=("source", "target")),
        Step("repeated_sentences", repeated_sentences, "temporary"),
        Step("counts", counts, "counts"),
    ]
