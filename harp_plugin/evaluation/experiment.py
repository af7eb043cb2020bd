"""An experiment: a first stage is reranked, every ranking is measured, files are written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyterrier as pt

from ..collections.dataset import JudgedDataset
from ..work.artifact import Artifact, Provenance
from ..work.lock import one_writer
from ..work.provenance import package_versions
from ..work.writing import remove_temporary
from .first_stage import FirstStage, dense_cosine, first_stages
from .fusions import Judged, Learning, by_folds, fused_run, notes
from .options import COSINE, EvaluationOptions, ExperimentOptions, file_stem, is_cosine
from .report import render
from .results import (
    Results,
    averages,
    corrected,
    groups_of_queries,
    measure_runs,
    paired_tests,
    parse_measures,
)
from .runs import fingerprints, make_reranker, rerank

__all__ = ["evaluate", "results_artifact", "results_text"]

_PACKAGES = [
    *("python", "harp-plugin", "ir-datasets", "ir-measures", "numpy", "pyterrier"),
    *("pyterrier-pisa", "scipy", "tokenizers", "torch", "transformers"),
]
_FILES = r"results\.json|report\.html|table\.(txt|tex)|plot\.(png|svg)"
"""Files of results, as paths in their folder."""
_Models = Mapping[str, str | list[str]]


def evaluate(options: EvaluationOptions) -> Results:
    """Rerank a first stage by each reranker and measure every ranking.

    Writes ``runs/<row>.run`` (TREC format) and ``results.json`` into ``options.output_dir``. A run
    that was made with the same options, model and queries already is not made again. A file that
    was made from others is replaced only with ``options.overwrite``.

    Raises:
        HarpError: the dataset, a measure, the first stage or a model is unknown or cannot be read,
            or the first stage retrieves nothing; or a file in the folder may not be replaced.
    """
    folder = Path(options.output_dir)
    with one_writer(folder):
        for path in (folder, folder / "runs", *folder.glob("train-datasets/*/runs")):
            remove_temporary(path)
        return _evaluate(options, folder)


def _evaluate(options: EvaluationOptions, folder: Path) -> Results:
    measures = parse_measures(options.measures)
    collection = JudgedDataset(options.dataset, options.fields)
    models = {row: fingerprints(system["model"]) for row, system in options.systems.items()}
    stages = first_stages(options, collection)
    experiment = _Experiment(options, collection, stages, models)
    named = dict.fromkeys(fusion.train_dataset for fusion in options.fused_rows.values())
    others = {name: collection.other_queries("train_dataset", name) for name in named if name}
    more = {name: [other.identity, other.judgments_hash] for name, other in others.items()}
    files = results_artifact(options, collection, stages, models, train_datasets=more)
    runs = experiment.single_runs()
    learnt_from = {name: experiment.to_learn_from(other) for name, other in others.items()}
    fusions = experiment.add_fusions(runs, learnt_from)
    per_query = measure_runs(runs, collection.topics, collection.qrels, measures)
    groups = groups_of_queries(collection.qrels)
    tests = paired_tests(per_query, options.reference, groups)
    results = Results(
        title=f"{options.dataset}, {len(collection.topics)} queries, top {options.depth}",
        path=folder / "results.json",
        baseline=options.reference,
        per_query=per_query,
        means=averages(per_query),
        p_values=corrected(tests, options.correction),
        correction=options.correction,
        notes=tuple(notes(fusions, options)),
        groups=groups,
    )
    record = {
        "models": models,
        "queries": len(collection.topics),
        "first_stage": next((stage.chosen for stage in stages.values() if stage.chosen), None),
        "fusions": fusions,
    }
    contents = {"results.json": results_text(options, results, **record)}
    if options.report:
        learned = {row: s.importances for row, s in stages.items() if s.importances is not None}
        contents["report.html"] = render(results, runs, collection, learned)
    files.write(contents)
    return results


def results_artifact(
    options: ExperimentOptions,
    collection: JudgedDataset,
    stages: Mapping[str, FirstStage],
    models: _Models,
    **more: Any,
) -> Artifact:
    """Return the files of results, and check before anything is computed that they may be written.

    Args:
        options: of the experiment.
        collection: that is evaluated.
        stages: the first stages, by row.
        models: fingerprints of the models, by row.
        more: what the results are made from besides; what is empty does not count.

    Raises:
        HarpError: they were made from something else, or harp did not write them.
    """
    settings = {
        **collection.identity,
        "judgments": collection.judgments_hash,
        **options.settings,
        "first_stages_content": [dict(stage.settings) for stage in stages.values()],
        "models": dict(models),
        **{name: value for name, value in more.items() if value},
    }
    provenance = Provenance(settings, package_versions(*_PACKAGES))
    folder = Path(options.output_dir)
    files = Artifact(folder, "results", provenance, options.rules, own=_FILES, is_shared=True)
    files.is_finished()
    return files


def results_text(options: ExperimentOptions, results: Any, **more: Any) -> str:
    """Write the content of ``results.json``.

    Args:
        options: of the experiment.
        results: `Results` or `CrossValidation`.
        more: further entries.
    """
    names = ("baseline", "means", "p_values", "per_query")
    values = {name: getattr(results, name) for name in names}
    versions = package_versions(*_PACKAGES)
    record = {"options": options.recorded, "versions": versions, **more, **values}
    return json.dumps(record, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


class _Experiment(NamedTuple):
    """What is evaluated, with its first stages and the fingerprints of its models, by row."""

    options: EvaluationOptions
    collection: JudgedDataset
    stages: Mapping[str, FirstStage]
    models: _Models

    def single_runs(self) -> dict[str, pd.DataFrame]:
        """Read or make the runs of first stages and rerankers, by row."""
        paths = self.options.run_paths
        runs = {row: stage.stored(paths[row]) for row, stage in self.stages.items()}
        stage, first = self.stages[self.options.rows[0]], runs[self.options.rows[0]]
        for name, arguments in self.options.systems.items():
            more = {"reranker": arguments, "model": self.models[name]}
            rerank_first = partial(self._reranked, first, name, arguments)
            runs[name] = stage.reranked(paths[name], stage.run_settings | more, rerank_first)
        return runs

    def _reranked(self, first: pd.DataFrame, name: str, arguments: dict[str, Any]) -> pd.DataFrame:
        """Rerank a run by the reranker of a row."""
        options = self.options
        if is_cosine(arguments["model"]):
            encoder = arguments["model"].removeprefix(COSINE)
            reranker: pt.Transformer = dense_cosine(encoder, options, self.collection)
        else:
            reranker = make_reranker(
                device=options.device, batch_tokens=options.batch_tokens, **arguments
            )
        return rerank(first, self.collection, reranker, name, options.quiet)

    def to_learn_from(self, collection: JudgedDataset) -> Judged:
        """Read or make the runs that are fused, for the queries of a dataset to learn from."""
        options, own = self.options, copy(self.options)
        fusions = options.fused_rows.values()
        needed = {row for fusion in fusions if fusion.train_dataset for row in fusion.of}
        own.dataset, own.fusions = collection.name, {}
        own.rerankers = {row: value for row, value in options.systems.items() if row in needed}
        further = options.first_stages
        own.first_stages = {row: value for row, value in further.items() if row in needed}
        own.index_dir = str(options.index_folder)
        folder = Path(options.output_dir) / "train-datasets"
        own.output_dir = str(folder / file_stem(collection.name))
        if self.collection.documents_identity == collection.documents_identity:
            given = self.stages.items()
            stages = {row: stage.on(collection) for row, stage in given if row in own.rows}
        else:
            stages = first_stages(own, collection)
        experiment = _Experiment(own, collection, stages, self.models)
        with_text = collection.qrels["qid"].isin(collection.topics["qid"])
        return Judged(experiment.single_runs(), collection.qrels[with_text])

    def add_fusions(
        self, runs: dict[str, pd.DataFrame], learnt_from: Mapping[str, Judged]
    ) -> dict[str, Any]:
        """Add the runs of fusions to the others.

        Returns:
            What the record holds of each fusion's weights, by row.
        """
        options, paths, records = self.options, self.options.run_paths, {}
        queries = self.collection.topics["qid"].tolist()
        judged = Judged(dict(runs), self.collection.qrels)
        for row, fusion in options.fused_rows.items():
            learnings = []
            if fusion.is_learnt and fusion.train_dataset is None:
                learnings = by_folds(queries, options.seed)
            elif fusion.train_dataset is not None:
                other = learnt_from[fusion.train_dataset]
                learnings = [Learning(other.qrels["qid"].unique().tolist(), queries, other)]
            more: dict[str, Any] = {"paths": paths, "options": options, "seed": options.seed}
            runs[row], records[row] = fused_run(paths[row], fusion, judged, learnings, **more)
        return records
