"""`harp build`: sources become corpus, link graph, term weights, examples and hard negatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from textwrap import wrap
from typing import Any

from ..corpus.options import CorpusOptions
from ..corpus.pages import WITH_SITE_ROOT
from ..errors import HarpError, show
from ..graph import GraphOptions
from ..graph.reasons import MISSING, OTHER_SITE
from ..negatives.options import NegativeOptions, QueryLikenessOptions
from ..options import Device, Overwriting, Progress, Ranks, Workers, flag, option
from ..options_parser import SOURCES, Command
from ..tasks.options import HARD_NEGATIVES
from ..tasks.registry import ExampleOptions, needed_stages
from ..weights.options import WeightOptions
from ..work.build_stage import BuildRequest, BuildStage
from ..work.lock import one_writer
from ..work.manifest import most_frequent
from ..work.sql.engine import EngineOptions

__all__ = ["STAGES", "BuildOptions", "build", "check", "summary"]

STAGES = {
    "corpus": "corpus.build:build_corpus",
    "graph": "graph.build:build_graph",
    "examples": "tasks.build:build_examples",
    "words": "weights.collection:build_words",
    "weights": "weights.build:build_weights",
    **{f"{kind}_negatives": f"negatives.{kind}:build_{kind}_negatives" for kind in HARD_NEGATIVES},
    "query_likeness": "negatives.query_likeness:build_query_likeness",
}
"""The stages of a build in order, and where each is defined; it is imported when it is needed."""

_FEWEST_WHOLE_ADDRESSES = 3
"""Fewer links to another site may have the path of a page by chance."""


@dataclass
class BuildOptions(
    ExampleOptions, QueryLikenessOptions, Workers, Device, Ranks, Progress, Overwriting
):
    """What `harp build` runs, and how much of the machine it uses.

    Attributes:
        output_dir: Folder for the result. What is finished in it is kept.
        stages: Only these stages are run (default: those that the tasks and --negatives need).
        negatives: Kinds of hard negatives that are found for the tasks which draw other pages, so
            that `harp train --negatives` can draw from one of them.
    """

    output_dir: str
    stages: list[str] = option([], choices=list(STAGES))
    negatives: list[str] = option([], choices=list(HARD_NEGATIVES))

    @property
    def chosen_stages(self) -> dict[str, BuildStage]:
        """The stages to run, in order.

        Raises:
            HarpError: a task is unknown.
        """
        negatives = [f"{kind}_negatives" for kind in self.negatives]
        chosen = set(self.stages)
        if not chosen:
            chosen = {*needed_stages(self.tasks), *negatives}
            chosen.update(*(_stage(name).needs for name in negatives))
            chosen |= {"query_likeness"} if self.query_examples else set()
        return {name: _stage(name) for name in STAGES if name in chosen}


def build(
    sources: Sequence[str | Path], options: BuildOptions, *parts: Any
) -> dict[str, dict[str, Any]]:
    """Run the stages of a build that are not finished yet.

    Args:
        sources: dumps and other hyperlinked sources, folders of them, and collections such as
            ``irds:kilt``; needed by the corpus stage only.
        options: what to run.
        parts: options of the stages, such as `CorpusOptions`, in any order; those of a class that
            is not given are its defaults.

    Returns:
        The manifest of each stage, by name. It is empty for a stage whose shards other hosts have
        not finished.

    Raises:
        HarpError: a source or model is missing or damaged, a task is unknown, nothing comes out,
            the output folder holds other work or other files, or another process writes to it.
    """
    request = BuildRequest(
        Path(options.output_dir),
        (options, *parts),
        sources,
        workers=options.workers,
        device=options.device,
        quiet=options.quiet,
        rules=options.rules,
        rank=options.rank or 0,
        world=options.world or 1,
    )
    check(request, options)
    with one_writer(request.directory, with_ranks=request.world > 1):
        return {name: stage.build(request) for name, stage in options.chosen_stages.items()}


def _stage(name: str) -> BuildStage:
    """Import a stage."""
    return resolve_name(f"{__package__.rpartition('.')[0]}.{STAGES[name]}")


def check(request: BuildRequest, options: BuildOptions) -> None:
    """Find what is missing, other work and other files before hours of reading.

    Raises:
        HarpError: a source, model, package or device is missing, a task is unknown, no task needs
            the hard negatives, their model is not a cross-encoder, the output folder holds a source
            or lies inside one, or a stage may not work in its folder.
    """
    for kind, name in HARD_NEGATIVES.items():
        is_asked = options.stages or kind in options.negatives
        if name and getattr(request.of(NegativeOptions), name) and not is_asked:
            raise HarpError(f"{flag(name)} belongs to --negatives {kind}: name both, or neither")
    stages = options.chosen_stages
    for name, chosen in stages.items():
        if request.world > 1 and not chosen.can_be_shared:
            raise HarpError(
                f"hosts cannot share the stage {name}: let one host build it, and name --stages "
                "weights or model_negatives with --rank and --world"
            )
        chosen.check(request)
    unfinished: list[str] = []
    described = []
    for name, chosen in stages.items():
        stage = chosen.stage(request, unknown=unfinished)
        described.append(stage)
        if unfinished or not stage.is_whole:
            unfinished.append(name)
    for stage in described:
        stage.check()


def summary(manifests: Mapping[str, Mapping[str, Any]], reasons: int = 5) -> str:
    """Write rows, the most frequent reasons of drops, and counts as lines of at most 80 columns."""
    lines = []
    width = max(9, *map(len, manifests)) if manifests else 9
    for stage, manifest in manifests.items():
        if not manifest:
            lines.append(f"{stage:<{width}} waits for the shards of other hosts: run again then")
            continue
        for table, rows in manifest["rows"].items():
            lines.append(f"{stage:<{width}} {table:<20} {rows:>12,}")
        drops = {r: n for r, n in manifest["drops"].items() if not r.startswith(WITH_SITE_ROOT)}
        for reason, count in most_frequent(drops)[:reasons]:
            start = f"{stage:<{width}} dropped {count:>10,}  "
            lines += wrap(reason, 80, initial_indent=start, subsequent_indent=" " * len(start))
        for name, count in manifest.get("counts", {}).items():
            lines.append(f"{stage:<{width}} counted {count:>10,}  {name}"[:80])
    return "\n".join([*lines, *_by_a_site_root(manifests)])


def _by_a_site_root(manifests: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Say by which `--site-root` most links that lead to no page would be found, if by any."""
    corpus, graph = (manifests.get(stage, {}).get("drops", {}) for stage in ("corpus", "graph"))
    roots = {
        reason.removeprefix(WITH_SITE_ROOT): number
        for reason, number in corpus.items()
        if reason.startswith(WITH_SITE_ROOT)
    }
    lines = []
    for start, reason in (("/", MISSING), ("http", OTHER_SITE)):
        of_kind = {root: number for root, number in roots.items() if root.startswith(start)}
        best = max(of_kind, key=of_kind.__getitem__, default="")
        if graph and best and of_kind[best] >= (1 if start == "/" else _FEWEST_WHOLE_ADDRESSES):
            of = f"{of_kind[best]:,} of {graph.get(reason, 0):,} {reason.replace('link', 'links')}"
            found = "would be found" if start == "/" else "may be pages here, found"
            lines += wrap(f"{of} {found} with --site-root {best}", 80)
    return lines


@Command(
    "SOURCE [SOURCE ...] --output-dir DIR",
    *(BuildOptions, CorpusOptions, GraphOptions, WeightOptions, EngineOptions, NegativeOptions),
    positional=SOURCES,
)
def command(options: BuildOptions, *others: Any) -> None:
    """Sources are hyperlinked: their links are resolved, their terms are weighed.

    The examples of the pre-training tasks are made, and hard negatives are mined if --negatives
    asks for them. A finished stage is kept, and an interrupted one is resumed.
    """
    *parts, sources = others
    show(summary(build(sources, options, *parts)))
