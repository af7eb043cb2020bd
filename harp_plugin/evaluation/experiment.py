"""An experiment: a first stage is reranked, every ranking is measured, files are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyterrier as pt
from tqdm.auto import tqdm

from ..collections.judged_dataset import JudgedDataset
from ..errors import HarpError, one_line
from ..files.hashes import file_hash
from ..files.locks import one_writer
from ..files.made_from import MadeFrom
from ..files.output_paths import refuse_input, refuse_special
from ..files.records import NOT_WRITTEN_BY_HARP, read_own_record, write_record
from ..files.versions import package_versions
from ..files.with_record import FolderWithRecord, record_path
from ..files.writing import remove_temporary
from ..models.loading import model_fingerprint
from ..ranking import HarpReranker
from ..ranking.versions import scoring_versions
from .first_stage import FirstStage, dense_cosine
from .fusion_options import LEARN
from .fusions import Fusion, Judged, Learning, by_folds, notes
from .options import COSINE, EvaluationOptions, ExperimentOptions, file_stem, is_cosine
from .report import render
from .results import Results, averages, corrected, measure_runs, paired_tests, parse_measures
from .runs import ranked, stored_run

__all__ = [
    "check_results",
    "evaluate",
    "fingerprints",
    "first_stages",
    "fusions_of",
    "make_reranker",
    "refuse_first_stage",
    "rerank",
    "results_settings",
    "retrieve",
    "stored_fusion",
    "versions",
    "written_options",
]

_PAIRS_AT_ONCE = 1000
_PACKAGES = [
    *("harp-plugin", "ir-datasets", "ir-measures", "numpy", "pyterrier", "pyterrier-pisa", "scipy"),
    *("tokenizers", "torch", "transformers"),
]


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
        for place in (folder, folder / "runs", *folder.glob("learn-on/*/runs")):
            remove_temporary(place)
        return _evaluate(options, folder / "results.json")


def _evaluate(options: EvaluationOptions, path: Path) -> Results:
    measures = parse_measures(options.measures)
    collection = JudgedDataset(options.dataset, options.fields)
    models = {row: fingerprints(system["model"]) for row, system in options.systems.items()}
    stages = first_stages(options, collection)
    learn_on = {name: _learning_dataset(options, name, collection) for name in _learn_on(options)}
    made_from = results_settings(options, collection, stages, models)
    if learn_on:
        made_from["learn_on"] = {name: other.identity for name, other in learn_on.items()}
    check_results(path, made_from, options)
    runs = _runs(options, collection, stages, models)
    learnt_from = {
        name: _judged(options, other, _stages_on(options, stages, collection, other), models)
        for name, other in learn_on.items()
    }
    fusions = _fuse(options, collection, runs, learnt_from)
    per_query = measure_runs(runs, collection.topics, collection.qrels, measures)
    results = Results(
        title=f"{options.dataset}, {len(collection.topics)} queries, top {options.depth}",
        path=path,
        baseline=options.reference,
        per_query=per_query,
        means=averages(per_query),
        p_values=corrected(paired_tests(per_query, options.reference), options.correction),
        correction=options.correction,
        notes=tuple(notes(fusions, fusions_of(options))),
    )
    record = _record(options, results, models, made_from)
    chosen = next((stage.chosen for stage in stages.values() if stage.chosen is not None), None)
    write_record(path, {**record, "first_stage": chosen, "fusions": fusions})
    if options.report:
        page = render(results, runs, collection)
        FolderWithRecord(path.parent, options.rules).write(path.with_name("report.html"), page)
    return results


def fusions_of(options: ExperimentOptions) -> dict[str, Any]:
    """The fusions, as `check_fusions` gives them, by row."""
    assert isinstance(options.fusions, dict)
    return options.fusions


def first_stages(options: ExperimentOptions, collection: JudgedDataset) -> dict[str, FirstStage]:
    """Make every first stage, by row; that which is reranked stands at the head."""
    stages = {options.rows[0]: FirstStage(options, collection)}
    assert isinstance(options.first_stages, dict)
    for row, first_stage in options.first_stages.items():
        own = copy(options)
        own.first_stage = first_stage
        stages[row] = FirstStage(own, collection)
    return stages


def results_settings(
    options: ExperimentOptions,
    collection: JudgedDataset,
    stages: Mapping[str, FirstStage],
    models: Mapping[str, Any],
) -> dict[str, Any]:
    """Collect what the results of an experiment are made from, apart from versions."""
    first, *others = (stage.settings for stage in stages.values())
    made_from = {**options.settings, "first_stage_content": first, "models": dict(models)}
    if others:
        made_from["first_stages_content"] = others
    return {**collection.identity, **made_from}


def check_results(path: Path, made_from: dict[str, Any], options: ExperimentOptions) -> None:
    """Check, before anything is computed, that the results may be written.

    Raises:
        HarpError: the file was made from other settings, or was not written by harp.
    """
    rules = options.rules
    refuse_special(path, rules.output)
    if path.exists():
        record = read_own_record(path, rules.output)
        settings, packages = record.get("made_from"), record.get("versions")
        if not isinstance(settings, dict) or not isinstance(packages, dict):
            raise HarpError(f"{path} {NOT_WRITTEN_BY_HARP}: name another {rules.output}")
        MadeFrom(made_from, versions()).can_use(path, MadeFrom(settings, packages), rules)


def _runs(
    options: EvaluationOptions,
    collection: JudgedDataset,
    stages: Mapping[str, FirstStage],
    models: dict[str, str | list[str]],
) -> dict[str, pd.DataFrame]:
    """Read or make the runs of first stages and rerankers, by row."""
    paths = _run_paths(options)
    for stage in stages.values():
        refuse_first_stage(stage, list(paths.values()))
    runs = retrieve(options, collection, stages, paths)
    stage, first = stages[options.rows[0]], runs[options.rows[0]]
    settings = {**collection.identity, "depth": options.depth, "first stage": stage.settings}
    for name, arguments in options.systems.items():
        runs[name] = stored_run(
            paths[name],
            {**settings, "reranker": arguments, "model": models[name]},
            partial(_reranked, first, collection, name, options),
            versions={**stage.versions, **scoring_versions()},
            rules=options.rules,
        )
    return runs


def _reranked(
    first: pd.DataFrame, collection: JudgedDataset, name: str, options: EvaluationOptions
) -> pd.DataFrame:
    """Rerank a run by the reranker of a row."""
    arguments = options.systems[name]
    if is_cosine(arguments["model"]):
        encoder = arguments["model"].removeprefix(COSINE)
        reranker: pt.Transformer = dense_cosine(encoder, options, collection)
    else:
        reranker = make_reranker(
            device=options.device, batch_tokens=options.batch_tokens, **arguments
        )
    return rerank(first, collection, reranker, name, options.quiet)


def _run_paths(options: ExperimentOptions) -> dict[str, Path]:
    folder = Path(options.output_dir) / "runs"
    return {row: folder / f"{file_stem(row)}.run" for row in options.rows}


def retrieve(
    options: ExperimentOptions,
    collection: JudgedDataset,
    stages: Mapping[str, FirstStage],
    paths: Mapping[str, Path],
) -> dict[str, pd.DataFrame]:
    """Read or make the runs of first stages, by row."""
    settings = {**collection.identity, "depth": options.depth}
    return {
        row: stored_run(
            paths[row],
            {**settings, "first stage": stage.settings},
            stage.retrieve,
            versions=stage.versions,
            rules=options.rules,
        )
        for row, stage in stages.items()
    }


def _learn_on(options: ExperimentOptions) -> list[str]:
    """The datasets from whose queries the weights of fusions are learnt."""
    names = [fusion["learn_on"] for fusion in fusions_of(options).values()]
    return list(dict.fromkeys(name for name in names if name is not None))


def _learning_dataset(
    options: EvaluationOptions, name: str, evaluated: JudgedDataset
) -> JudgedDataset:
    """Open a dataset from whose queries weights are learnt.

    Raises:
        HarpError: it shares a query with the dataset that is evaluated.
    """
    collection = JudgedDataset(name, options.fields)
    shared = collection.topics.merge(evaluated.topics, on=["qid", "query"])
    if len(shared):
        raise HarpError(
            f"learn_on {name} has the query {shared['qid'][0]} of {options.dataset}, on which the "
            "weights are tested: name another dataset, or leave learn_on out to learn by folds"
        )
    return collection


def _stages_on(
    options: EvaluationOptions,
    stages: Mapping[str, FirstStage],
    evaluated: JudgedDataset,
    collection: JudgedDataset,
) -> dict[str, FirstStage]:
    """First stages for the queries of another dataset: the same ones on the same documents."""
    if evaluated.documents_identity == collection.documents_identity:
        return {row: stage.on(collection) for row, stage in stages.items()}
    return first_stages(options, collection)


def _judged(
    options: EvaluationOptions,
    collection: JudgedDataset,
    stages: Mapping[str, FirstStage],
    models: dict[str, str | list[str]],
) -> Judged:
    """Make the runs that are fused, for the queries of a dataset that weights are learnt from."""
    fused = [fusion["of"] for fusion in fusions_of(options).values() if fusion["learn_on"]]
    needed = {row for rows in fused for row in rows}
    assert isinstance(options.rerankers, dict) and isinstance(options.first_stages, dict)
    own = copy(options)
    own.dataset, own.fusions = collection.name, {}
    own.rerankers = {row: value for row, value in options.rerankers.items() if row in needed}
    own.first_stages = {row: v for row, v in options.first_stages.items() if row in needed}
    own.index_dir = options.index_dir or str(Path(options.output_dir) / "index")
    own.output_dir = str(Path(options.output_dir) / "learn-on" / file_stem(collection.name))
    chosen = {row: stage for row, stage in stages.items() if row in own.rows}
    runs = _runs(own, collection, chosen, models)
    return Judged(runs, collection.qrels)


def _fuse(
    options: EvaluationOptions,
    collection: JudgedDataset,
    runs: dict[str, pd.DataFrame],
    learnt_from: Mapping[str, Judged],
) -> dict[str, Any]:
    """Add the runs of fusions to the others.

    Returns:
        What the record holds of each fusion's weights, by row.
    """
    paths, records = _run_paths(options), {}
    queries = collection.topics["qid"].tolist()
    judged = Judged(dict(runs), collection.qrels)
    for row, entry in fusions_of(options).items():
        learnings = []
        if entry["weights"] == LEARN and entry["learn_on"] is None:
            learnings = by_folds(queries, options.seed)
        elif entry["weights"] == LEARN:
            other = learnt_from[entry["learn_on"]]
            learnings = [Learning(other.qrels["qid"].unique().tolist(), queries, other)]
        fusion = Fusion(
            entry,
            judged,
            learnings,
            measure=options.measures[0],
            seed=options.seed,
            depth=options.depth,
        )
        records[row] = fusion.record
        runs[row] = stored_fusion(paths[row], fusion, entry, paths, options)
    return records


def stored_fusion(
    path: Path,
    fusion: Fusion,
    entry: Mapping[str, Any],
    paths: Mapping[str, Path],
    options: ExperimentOptions,
) -> pd.DataFrame:
    """Read or make the run of a fusion.

    Args:
        path: of the run.
        fusion: makes it.
        entry: the fusion's entry among the options.
        paths: of the runs that are fused, by row.
        options: of the experiment.
    """
    settings = {
        "fusion": entry,
        "weights": fusion.record,
        "depth": options.depth,
        "runs": {row: file_hash(paths[row]) for row in entry["of"]},
    }
    packages = package_versions("harp_plugin", "numpy", "pandas")
    return stored_run(path, settings, fusion.run, versions=packages, rules=options.rules)


def refuse_first_stage(stage: FirstStage, outputs: list[Path]) -> None:
    """Refuse to write over the first stage's run.

    Raises:
        HarpError: the run is an output, or the note of an output.
    """
    if stage.file is not None:
        for path in outputs:
            for file in (path, record_path(path)):
                refuse_input(file, {"the first stage": stage.file}, "--output-dir")


def make_reranker(model: str | list[str], **arguments: Any) -> pt.Transformer:
    """Make the reranker of a model, or the ensemble of several."""
    if isinstance(model, list):
        return HarpReranker.ensemble(model, **arguments)
    return HarpReranker(model, **arguments)


def fingerprints(model: str | list[str]) -> str | list[str]:
    """Compute the fingerprint of a model or an encoder, or of each model in a list."""
    if isinstance(model, list):
        return list(map(model_fingerprint, model))
    return model_fingerprint(model.removeprefix(COSINE))


def rerank(
    first: pd.DataFrame, collection: JudgedDataset, reranker: pt.Transformer, name: str, quiet: bool
) -> pd.DataFrame:
    """Rerank a run a few queries at a time, so that few texts are in memory at once."""
    parts = []
    with tqdm(total=len(first), desc=one_line(name), unit="pair", disable=quiet) as bar:
        for part in _few_queries(first):
            parts.append(ranked(reranker.transform(collection.with_texts(part))))
            bar.update(len(part))
    return pd.concat(parts, ignore_index=True)


def _few_queries(run: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Cut a run, in which the results of a query stand together, between queries."""
    sizes = run.groupby("qid", sort=False).size()
    part = sizes.cumsum().sub(1) // _PAIRS_AT_ONCE
    for _, rows in run.groupby(run["qid"].map(part), sort=False):
        yield rows.reset_index(drop=True)


def _record(
    options: EvaluationOptions,
    results: Results,
    models: dict[str, str | list[str]],
    made_from: dict[str, Any],
) -> dict[str, Any]:
    return {
        "options": written_options(options),
        "made_from": made_from,
        "versions": versions(),
        "models": models,
        "queries": len(next(iter(next(iter(results.per_query.values())).values()))),
        "baseline": results.baseline,
        "means": results.means,
        "p_values": results.p_values,
        "per_query": results.per_query,
    }


def written_options(options: ExperimentOptions) -> dict[str, Any]:
    """The options that a record shows: all but those that only say what may be replaced."""
    values = asdict(options)
    return {name: values[name] for name in values.keys() - {"overwrite", "keep"}}


def versions() -> dict[str, str]:
    """Look up the versions of everything that decides what an experiment computes."""
    return package_versions("python", *_PACKAGES)
