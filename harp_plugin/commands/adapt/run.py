"""The steps of `harp adapt`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import HarpError
from ...graph.reasons import TITLE_LINK
from ...models.loading import PIPELINE
from ...work.artifact import MANIFEST, Artifact, read_if_whole
from ...work.manifest import read_manifest
from ..steps import elapsed, in_words, options_of_every_step, output_folder, say, tell
from .options import DEFAULT_BUDGET, AdaptOptions
from .plan import make_plan
from .ranking import FEWEST_QUERIES, Systems
from .refresh import pipeline_record, refresh
from .training import FEWEST_TRAIN_QUERIES, query_count, train, training_recipe

if TYPE_CHECKING:
    from ...collections.dataset import JudgedDataset
    from ...corpus.options import CorpusOptions
    from ...evaluation import Results

__all__ = ["adapt"]

_SECONDS_OF_A_QUERY = 14.4
"""Of the budget, for each query that may be drawn: 250 to 500 of each kind, for dev and for test.

The first budget decides."""
_MOST_TRAIN_QUERIES = 5000
_MOST_QUERIES_PER_PAGE = 10
"""Of each kind. Of 296 train queries of Django's manual 143 were for one page: it tuned BM25."""
_FEWEST_TEST_QUERIES = 30
"""With fewer, all queries are test, and weights for them are learned from the other folds."""
_FEWEST_LINKS = 100
"""With fewer links to learn from, no model is trained: it would see them again and again."""


def adapt(
    sources: Sequence[str | Path], options: AdaptOptions, corpus: CorpusOptions | None = None
) -> Results | None:
    """Build, make judged queries, train on the links, and rank the queries by all systems.

    What is finished in the folder is kept, so that an interrupted run resumes. The number of
    training steps is decided once, when the training begins. Where all is finished, changed pages
    are read, indexed and encoded, and models stay, unless the options ask for more.

    Args:
        sources: as `harp build` takes them.
        options: what to do.
        corpus: how sources are read.

    Returns:
        The table; None where the models stayed, or where there are too few queries to measure with.
        The folder has ``report.html``, and the pipeline that `harp_plugin.HarpPipeline.load` takes.

    Raises:
        HarpError: as `harp build`, `harp collect`, `harp train` and `harp evaluate` do.
    """
    record = pipeline_record(sources, options, corpus)
    with output_folder(options.folder):
        stored, is_finished = record.read() or {}, record.is_finished()
        budget = options.budget or stored.get("budget", DEFAULT_BUDGET)
        trains = options.retrain or options.overwrite or budget != stored.get("budget")
        # Of the same options: what differs was made for other pages, or for another budget.
        overwrite = options.overwrite or bool(stored)
        options = replace(options, budget=budget, overwrite=overwrite)
        recipe = training_recipe(options)
        _build(sources, options, corpus)
        if is_finished:
            changes = refresh(options, partial(_collect, options))
            say("refresh", changes or "no page has changed")
        else:
            record.start(budget=budget)
            _collect(options, options.folder / "collection")
        own, results = _own_queries(options), None
        if trains or not is_finished:
            build_examples = partial(_build, sources, options, corpus, recipe)
            row, results = _learn(options, recipe, record, build_examples)
            stored = record.commit([PIPELINE], budget=budget, row=row)
        if own is not None:
            print(Systems(options).evaluate_own_queries(own, stored["row"]))
        return results


def _learn(
    options: AdaptOptions,
    recipe: dict[str, Any],
    record: Artifact,
    build_examples: Callable[[], None],
) -> tuple[str, Results | None]:
    """Learn, and save the pipeline after each step; return its row in the table, and the table.

    A finished pipeline stays until a model of it is trained again, or until the end.
    """
    systems, stays = Systems(options), record.is_finished()
    rows = read_manifest(options.folder / "build" / "graph")["rows"]
    _tell_what_is_few(options, rows, systems)
    if not systems.can_be_measured:
        _save(systems, record)
        systems.make_indexes()
        return systems.saved_row, None
    results = systems.evaluate()
    if not stays:
        _save(systems, record)
    if ranker := systems.learn():
        systems = replace(systems, ranker=ranker)
        results = systems.evaluate()
    if not stays:
        _save(systems, record)
    print(f"a pipeline is in {options.folder}, after {in_words(elapsed())}")
    steps = {}
    if rows["anchors"] >= _FEWEST_LINKS:
        steps = make_plan(options, recipe, options.seconds - elapsed(), build_examples)
    if any(steps.values()):
        print(results)
        _save(systems, record)
        systems = replace(systems, reranker=train(recipe, options, steps))
        results = systems.evaluate()
    _save(systems, record)
    return systems.saved_row, results


def _own_queries(options: AdaptOptions) -> JudgedDataset | None:
    """Read the user's own queries.

    Raises:
        HarpError: a file is damaged, or a judged document is not one of the corpus.
    """
    from ...collections.dataset import JudgedDataset
    from ...collections.datasets import with_queries

    if options.queries is None or options.qrels is None:
        return None
    files = Path(options.queries), Path(options.qrels)
    own = JudgedDataset(with_queries(options.dataset("test"), *files))
    judged = own.qrels["docno"]
    known = own.existing_texts(judged)
    if unknown := [docno for docno in judged if docno not in known]:
        raise HarpError(
            f"--qrels {options.qrels} judges {unknown[0]!r}, which is no document of the corpus: "
            "name documents as the key doc_id of collection/documents.jsonl does"
        )
    return own


def _tell_what_is_few(options: AdaptOptions, rows: Mapping[str, int], systems: Systems) -> None:
    """Say, before any training, for what the corpus has too few links and queries."""
    count, links, lines = query_count(options, "test"), rows["anchors"], []
    if not links + rows.get("held_out_links", 0):
        titles = read_manifest(options.folder / "build" / "graph")["drops"].get(TITLE_LINK, 0)
        reason = f"the text of each of {titles:,} links is the title of its page"
        lines.append(
            f"{reason if titles else 'the pages have no links to each other'}. What works without: "
            "BM25 and the cosine; and titles and headings as queries to train with, by harp build "
            "SOURCE --output-dir DIR --tasks ati rwi srr"
        )
    elif links < _FEWEST_LINKS:
        lines.append(f"{links} links are too few to train on: {_FEWEST_LINKS} are needed")
    if not systems.can_be_measured:
        lines.append(
            f"warning: {count} judged queries are too few to choose by or to measure with "
            f"({FEWEST_QUERIES} are needed): nothing is trained, and there is no table; the "
            "pipeline is BM25 over fields and the cosine, fused by ranks"
        )
    elif not query_count(options, "dev"):
        lines.append(
            f"{count} judged queries are few: all are test queries, in folds, each with weights "
            "from the others; the weights of the pipeline are from all"
        )
    for line in lines:
        tell(line)


def _save(systems: Systems, record: Artifact) -> None:
    """Save the pipeline; from here on it is unfinished, until the record is committed."""
    record.start(budget=systems.options.budget)
    systems.save()


def _build(
    sources: Sequence[str | Path],
    options: AdaptOptions,
    corpus: CorpusOptions | None,
    recipe: dict[str, Any] | None = None,
) -> None:
    """Build pages and links; with a recipe of training, its examples."""
    from ...graph import GraphOptions
    from ...tasks.options import HARD_NEGATIVES
    from ...weights.options import WeightOptions
    from ..build import BuildOptions, build, summary

    training = recipe or {}
    building = BuildOptions(
        output_dir=str(options.folder / "build"),
        tasks=[*training.get("tasks", ())],
        negatives=[kind for kind in HARD_NEGATIVES if kind == training.get("negatives")],
        stages=[] if recipe else ["corpus", "graph"],
        workers=options.workers,
        **options_of_every_step(options),
    )
    graph = GraphOptions(
        min_words=options.min_words,
        held_out_links=options.held_out_links,
        title_anchors=options.title_anchors,
    )
    weights = WeightOptions(model=options.model)
    say("build", "training examples" if recipe else "pages and links of the source")
    print(summary(build(sources, building, *filter(None, [corpus]), graph, weights)))


def _collect(options: AdaptOptions, output: Path) -> None:
    from ...collections.known_items.queries import QueryOptions
    from ...collections.known_items.tables import KINDS
    from ..collect import CollectOptions, collect, summary

    say("collect", "judged queries of the corpus itself, split by page")
    folder = options.folder
    drawn = read_if_whole(folder / "collection" / MANIFEST)
    most: dict[str, Any] = {
        "max_queries_per_page": _MOST_QUERIES_PER_PAGE,
        "max_queries": round(min(max(options.seconds / _SECONDS_OF_A_QUERY, 250), 500)),
    }
    if drawn:
        most = {name: drawn["settings"].get(name) for name in most}
    collecting = CollectOptions(
        output_dir=str(output), workers=options.workers, **options_of_every_step(options)
    )
    queries = QueryOptions(
        kinds=list(KINDS),
        **most,
        max_train_queries=_MOST_TRAIN_QUERIES,
        train_fraction=0.4,
        min_train_queries=FEWEST_TRAIN_QUERIES,
        min_test_queries=_FEWEST_TEST_QUERIES,
        allow_empty=True,
        seed=options.seed,
    )
    print(summary(collect(folder / "build", collecting, queries)))
