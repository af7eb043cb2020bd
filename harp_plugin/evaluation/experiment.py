"""An experiment: a first stage is reranked, every ranking is measured, files are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyterrier as pt
from tqdm.auto import tqdm

from ..collections.judged_dataset import JudgedDataset
from ..errors import HarpError, one_line
from ..files.locks import one_writer
from ..files.made_from import MadeFrom
from ..files.output_paths import refuse_input, refuse_special
from ..files.records import NOT_WRITTEN_BY_HARP, read_own_record, write_record
from ..files.versions import package_versions
from ..files.with_record import record_path
from ..files.writing import remove_temporary
from ..models.loading import model_fingerprint
from ..ranking import HarpReranker
from ..ranking.versions import scoring_versions
from .first_stage import FirstStage
from .options import EvaluationOptions, ExperimentOptions, file_stem
from .results import Results, averages, corrected, measure_runs, paired_tests, parse_measures
from .runs import ranked, stored_run

__all__ = [
    "check_results",
    "evaluate",
    "fingerprints",
    "make_reranker",
    "refuse_first_stage",
    "rerank",
    "results_settings",
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
        for place in (folder, folder / "runs"):
            remove_temporary(place)
        return _evaluate(options, folder / "results.json")


def _evaluate(options: EvaluationOptions, path: Path) -> Results:
    measures = parse_measures(options.measures)
    collection = JudgedDataset(options.dataset, options.fields)
    models = {row: fingerprints(system["model"]) for row, system in options.systems.items()}
    stage = FirstStage(options, collection)
    made_from = results_settings(options, collection, stage, models)
    check_results(path, made_from, options)
    runs = _runs(options, collection, stage, models)
    per_query = measure_runs(runs, collection.topics, collection.qrels, measures)
    results = Results(
        title=f"{options.dataset}, {len(collection.topics)} queries, top {options.depth}",
        path=path,
        baseline=options.reference,
        per_query=per_query,
        means=averages(per_query),
        p_values=corrected(paired_tests(per_query, options.reference), options.correction),
        correction=options.correction,
    )
    write_record(path, _record(options, results, models, made_from))
    return results


def results_settings(
    options: ExperimentOptions,
    collection: JudgedDataset,
    stage: FirstStage,
    models: Mapping[str, Any],
) -> dict[str, Any]:
    """Collect what the results of an experiment are made from, apart from versions."""
    made_from = {**options.settings, "first_stage_content": stage.settings, "models": dict(models)}
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
    stage: FirstStage,
    models: dict[str, str | list[str]],
) -> dict[str, pd.DataFrame]:
    folder = Path(options.output_dir) / "runs"
    paths = {row: folder / f"{file_stem(row)}.run" for row in options.rows}
    refuse_first_stage(stage, list(paths.values()))
    settings = {**collection.identity, "depth": options.depth, "first stage": stage.settings}
    row = options.rows[0]
    first = stored_run(
        paths[row], settings, stage.retrieve, versions=stage.versions, rules=options.rules
    )
    runs = {row: first}
    for name, arguments in options.systems.items():
        reranker = make_reranker(
            device=options.device, batch_tokens=options.batch_tokens, **arguments
        )
        runs[name] = stored_run(
            paths[name],
            {**settings, "reranker": arguments, "model": models[name]},
            partial(rerank, first, collection, reranker, name, options.quiet),
            versions={**stage.versions, **scoring_versions()},
            rules=options.rules,
        )
    return runs


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
    """Compute the fingerprint of a model, or of each model in a list."""
    return (
        list(map(model_fingerprint, model)) if isinstance(model, list) else model_fingerprint(model)
    )


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
