"""First stages: BM25, with fields or without, a cosine, an index, a run, or a user's function."""

from __future__ import annotations

import importlib
import inspect
import json
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyterrier as pt

from ..collections.dataset import JudgedDataset
from ..collections.judged_queries import few_shot_order
from ..errors import HarpError
from ..models.loading import PIPELINE
from ..ranking.bm25 import Bm25
from ..ranking.dense import DenseCosine, HarpRetriever
from ..ranking.fielded import FieldedBm25, FieldedIndex, FieldSettings, Tuning, tune
from ..ranking.pipeline import HarpPipeline
from ..ranking.ranking_measures import parse_measure
from ..work.artifact import Artifact, Provenance
from ..work.provenance import scoring_versions
from ..work.records import file_hash
from .options import (
    COSINE,
    DENSE,
    FIELDED_BM25,
    SAVED_PIPELINE,
    SCORED_DOCUMENTS,
    ExperimentOptions,
)
from .runs import COLUMNS, ranked, read_run, stored_run

__all__ = ["TUNING_FILE", "FirstStage", "dense_cosine", "first_stage", "first_stages"]

logger = logging.getLogger(__name__)

TUNING_FILE = "fielded-bm25.json"
"""File name in the output folder of the settings that were chosen and of all that were tried."""
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@dataclass(frozen=True)
class FirstStage:
    """Gives each topic its best results.

    Attributes:
        options: of the experiment, among them the depth.
        collection: whose topics are ranked.
        settings: what the results depend on, apart from the collection and the depth.
        versions: of the packages that they depend on.
        search: gives the results of queries, with at least qid, docno and score.
        fielded: BM25 over fields, if it is that.
        importances: of the features, if it is a pipeline that ends with a learned ranker.
    """

    options: ExperimentOptions
    collection: JudgedDataset
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    search: Callable[[pd.DataFrame], pd.DataFrame]
    fielded: _Fielded | None = None
    importances: pd.Series | None = None

    @property
    def chosen(self) -> dict[str, Any] | None:
        """The weights, k1 and b of fielded BM25, chosen or named; None for another first stage."""
        return None if self.fielded is None else self.fielded.chosen

    def on(self, collection: JudgedDataset) -> FirstStage:
        """Take this first stage, as it is, for other queries on the same documents."""
        if SCORED_DOCUMENTS in self.settings:
            return _scored_documents(self.options, collection, "")  # each dataset brings its own
        return replace(self, collection=collection)

    def retrieve(self) -> pd.DataFrame:
        """Retrieve for the topics: columns qid, docno, score, rank.

        Raises:
            HarpError: nothing was retrieved for any topic, or the results lack a column.
        """
        topics = self.collection.topics
        run = self.search(topics)
        if missing := [column for column in COLUMNS[:3] if column not in run.columns]:
            raise HarpError(f"the first stage gives no column {missing[0]}: return ranked results")
        run = ranked(run.astype({"qid": str, "docno": str, "score": float}))
        run = run[run["qid"].isin(topics["qid"]) & (run["rank"] < self.options.depth)]
        if run.empty:
            raise HarpError(
                f"the first stage retrieved nothing for the {len(topics)} queries of"
                f" {self.collection.name}: check that both are of one collection and one language,"
                " and that a run has results of these queries"
            )
        count = len(topics)
        lacking = count - run["qid"].nunique()
        if 10 * lacking > count:  # a few may have no word of the documents
            logger.warning("the first stage has no result for %d of %d queries", lacking, count)
        if not run["docno"].isin(self.collection.qrels["docno"]).any():
            logger.warning(
                "no document that the first stage retrieved is judged in %s: check that both are of"
                " one collection",
                self.collection.name,
            )
        return run

    @property
    def run_settings(self) -> dict[str, Any]:
        """What the run depends on."""
        depth = {"depth": self.options.depth}
        return {**self.collection.identity, **depth, "first stage": dict(self.settings)}

    def stored(self, path: Path) -> pd.DataFrame:
        """Read or make the run, as `stored_run` does."""
        versions, rules = self.versions, self.options.rules
        return stored_run(path, self.run_settings, self.retrieve, versions=versions, rules=rules)

    def reranked(
        self, path: Path, settings: Mapping[str, Any], make: Callable[[], pd.DataFrame]
    ) -> pd.DataFrame:
        """Read or make a run that reranks the results of this first stage."""
        versions, rules = {**self.versions, **scoring_versions()}, self.options.rules
        return stored_run(path, settings, make, versions=versions, rules=rules)


def first_stage(
    options: ExperimentOptions, collection: JudgedDataset, name: str | None = None
) -> FirstStage:
    """Make a first stage.

    Args:
        options: of the experiment.
        collection: whose topics are ranked.
        name: as the option ``first_stage`` has it, which is the default.

    Raises:
        HarpError: the name is unknown, its function cannot be imported or returns no transformer,
            or the options of BM25 over fields are unfit.
    """
    name = name or options.first_stage
    kind, colon, argument = name.partition(":")
    if make := _FIRST_STAGES.get(kind + colon):
        return make(options, collection, argument)
    if Path(name).is_file():
        settings = {"run": file_hash(Path(name))}
        return FirstStage(options, collection, settings, {}, lambda _: read_run(Path(name)))
    if _FUNCTION.fullmatch(name):
        return _call(options, collection, name)
    raise HarpError(
        f"unknown first stage {name!r}: name bm25, {FIELDED_BM25}, {COSINE}MODEL, {DENSE}FOLDER, "
        f"{SAVED_PIPELINE}FOLDER, {SCORED_DOCUMENTS}, a run that exists, or module:function"
    )


def first_stages(options: ExperimentOptions, collection: JudgedDataset) -> dict[str, FirstStage]:
    """Make every first stage, by row; the first one is reranked."""
    names = {options.rows[0]: options.first_stage, **options.first_stages}
    return {row: first_stage(options, collection, name) for row, name in names.items()}


def dense_cosine(model: str, options: ExperimentOptions, collection: JudgedDataset) -> DenseCosine:
    """Make the cosine of an encoder, which searches or reranks by one index of vectors."""
    return DenseCosine(
        model,
        dataset=collection.name,
        index_dir=options.index_folder,
        text_field=options.fields,
        num_results=options.depth,
        device=options.device,
        dtype=options.dtype,
        verbose=not options.quiet,
    )


def _bm25(options: ExperimentOptions, collection: JudgedDataset, _: str) -> FirstStage:
    bm25 = Bm25(
        collection,
        options.index_folder,
        k1=options.bm25_k1,
        b=options.bm25_b,
        num_results=options.depth,
        quiet=options.quiet,
    )
    return FirstStage(options, collection, bm25.settings, bm25.versions, bm25.transform)


def _cosine(options: ExperimentOptions, collection: JudgedDataset, model: str) -> FirstStage:
    cosine = dense_cosine(model, options, collection)
    encoder = cosine.encoder
    settings = {**encoder.settings, "model": encoder.fingerprint}
    return FirstStage(options, collection, settings, encoder.versions, cosine.transform)


def _dense(options: ExperimentOptions, collection: JudgedDataset, folder: str) -> FirstStage:
    dense = HarpRetriever(folder, num_results=options.depth, device=options.device)
    return FirstStage(options, collection, dense.settings, {}, dense.transform)


def _pipeline(options: ExperimentOptions, collection: JudgedDataset, folder: str) -> FirstStage:
    pipeline = HarpPipeline.load(folder)
    settings = {"pipeline": file_hash(Path(folder) / PIPELINE)}
    stage = FirstStage(options, collection, settings, scoring_versions(), pipeline.transform)
    return replace(stage, importances=pipeline.importances)


def _scored_documents(options: ExperimentOptions, collection: JudgedDataset, _: str) -> FirstStage:
    def search(topics: pd.DataFrame) -> pd.DataFrame:
        queries = set(topics["qid"])
        scored = (line for line in collection.scored_documents() if line.query in queries)
        return pd.DataFrame(scored, columns=["qid", "docno", "score"])

    collection.check(SCORED_DOCUMENTS)
    return FirstStage(options, collection, {SCORED_DOCUMENTS: collection.name}, {}, search)


def _call(options: ExperimentOptions, collection: JudgedDataset, name: str) -> FirstStage:
    if not options.allow_functions:
        raise HarpError(
            f"first stage {name} is a function, which may do anything: give --allow-functions on "
            "the command line to call it, if you trust it"
        )
    module_name, function_name = name.split(":")
    try:
        function = getattr(importlib.import_module(module_name), function_name)
    except (ImportError, AttributeError) as error:
        raise HarpError(f"first stage {name} cannot be imported: {error}") from error
    can_be_called = inspect.isfunction(function) or inspect.isclass(function)
    if not can_be_called:
        raise HarpError(f"first stage {name} is {function!r:.60}: name a function or a class")
    transformer = function(options)
    if not isinstance(transformer, pt.Transformer):
        raise HarpError(f"first stage {name} returns {type(transformer)}: return a transformer")
    source = file_hash(Path(inspect.getfile(function)))
    settings = {"function": name, "source": source}
    return FirstStage(options, collection, settings, {}, transformer.transform)


class _Fielded:
    """BM25 over fields, with settings that are named or chosen by other queries.

    Settings are chosen when they are first needed, and kept in the output folder.

    Raises:
        HarpError: the documents lack a field, or the queries to choose by are unfit.
    """

    def __init__(self, options: ExperimentOptions, collection: JudgedDataset) -> None:
        self._options = options
        self._collection = collection
        weights = options.field_weights or {}
        fields = [*weights] or options.fields
        self._index = FieldedIndex(collection, options.index_folder, fields, quiet=options.quiet)
        self._start = FieldSettings.from_arguments(
            self._index.fields, weights or None, options.bm25_k1, options.bm25_b
        )
        self.settings = {**self._index.settings, **self._start.arguments}
        self._queries: JudgedDataset | None = None
        if options.tuning_dataset:
            self._queries = collection.other_queries("tuning_dataset", options.tuning_dataset)
            self.settings |= {
                "tuned on": self._queries.identity,
                "judgments": self._queries.judgments_hash,
                "measure": options.measures[0],
            }
            if options.tuning_queries:
                self.settings["queries to tune on"] = options.tuning_queries
        self.versions = self._index.versions

    def search(self, topics: pd.DataFrame) -> pd.DataFrame:
        """Retrieve by the chosen settings."""
        arguments = {name: self.chosen[name] for name in ("weights", "k1", "b")}
        bm25 = FieldedBm25(self._index, **arguments, num_results=self._options.depth)
        return bm25.transform(topics)

    @cached_property
    def chosen(self) -> dict[str, Any]:
        """The weights, k1 and b; where they were tuned, the measure and its value as well."""
        if self._queries is None:
            return self._start.arguments
        path = Path(self._options.output_dir) / TUNING_FILE
        settings = {**self._collection.documents_identity, **self.settings}
        made_from = Provenance(settings, self.versions)
        file = Artifact(path, "tuning", made_from, self._options.rules, is_file=True)
        if not file.is_finished():
            tuning = self._tune(self._queries)
            tried = tuning.tried.to_dict("records")
            content = {"measure": tuning.measure, "value": tuning.value, "tried": tried}
            with file.writing() as temporary:
                text = json.dumps({**tuning.arguments, **content}, indent=2)
                temporary.write_text(text + "\n", encoding="utf-8")
        stored = json.loads(path.read_text(encoding="utf-8"))
        return {name: value for name, value in stored.items() if name != "tried"}

    def _tune(self, queries: JudgedDataset) -> Tuning:
        measure, topics = parse_measure(self._options.measures[0]), queries.topics
        drawn = few_shot_order(topics["qid"], 0, "tuning")[: self._options.tuning_queries]
        topics, quiet = topics[topics["qid"].isin(drawn)], self._options.quiet
        tuning = tune(self._index, topics, queries.qrels, measure, start=self._start, quiet=quiet)
        if tuning.value == 0:
            raise HarpError(
                f"{measure} is 0 for all queries of tuning_dataset {queries.name} ({len(topics)} "
                "are read), whatever the weights: read more of them, or name queries that are "
                f"judged on the documents of {self._collection.name}"
            )
        return tuning


def _fielded(options: ExperimentOptions, collection: JudgedDataset, _: str) -> FirstStage:
    fielded = _Fielded(options, collection)
    settings, versions = fielded.settings, fielded.versions
    return FirstStage(options, collection, settings, versions, fielded.search, fielded)


_FIRST_STAGES = {
    "bm25": _bm25,
    FIELDED_BM25: _fielded,
    COSINE: _cosine,
    DENSE: _dense,
    SAVED_PIPELINE: _pipeline,
    SCORED_DOCUMENTS: _scored_documents,
}
"""How each first stage is made, by its name or by what its name begins with."""
