"""The cross-validation: folds, runs of conditions, measures, tests and files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm.auto import tqdm

from ...collections.dataset import JudgedDataset
from ...models.loading import model_fingerprint
from ...work.lock import one_writer
from ...work.output_paths import refuse_input
from ...work.records import write_record
from ...work.with_record import FolderWithRecord
from ...work.writing import remove_temporary
from ..first_stage import FirstStage, first_stages
from ..folds import Fold, draw_parts, folds_of, read_parts
from ..fused_runs import fusions_of
from ..options import file_stem
from ..results import averages, corrected, measure_runs, paired_tests, parse_measures
from ..results_record import check_results, results_settings, versions, written_options
from ..runs import stored_run
from ..single_runs import refuse_first_stage, retrieve
from .conditions import Condition
from .fold_runs import FirstStageRun, FoldRuns
from .fused_runs import FusedRuns
from .options import CrossValidationOptions, count_label
from .plot import draw
from .pooling import Pooling
from .recipes import Recipes, TrainingQueries, check_finetuning
from .results import CrossValidation, mean_and_deviation, over_seeds

__all__ = ["cross_validate"]

PerQuery = dict[str, dict[str, float]]
_FOLDERS = ("runs", "folds", "finetuning")


def cross_validate(options: CrossValidationOptions) -> CrossValidation:
    """Fine-tune each system on each fold's training queries and rank the queries held out.

    The folds' held-out rankings of a system make up one run over all queries (PROP, 4.4.3), at
    each number of training queries (HARP, Figure 4). Writes into ``options.output_dir``: ``runs``
    (TREC format), ``finetuning`` (recipe, log and manifest of each fine-tuning), ``results.json``,
    ``table.txt``, ``table.tex``, ``plot.png`` and ``plot.svg``. What is there already and was made
    with the same options, models and queries is not made again. What was made from something else
    is replaced only with ``options.overwrite``.

    Raises:
        HarpError: the dataset, a measure, the first stage, a model, the folds or an option of
            fine-tuning is at fault, which is found before anything is trained; or a fine-tuning
            fails; or something in the folder may not be replaced.
    """
    folder = Path(options.output_dir)
    with one_writer(folder):
        for place in (folder, *(folder / name for name in _FOLDERS)):
            remove_temporary(place)
        return _cross_validate(options)


def _cross_validate(options: CrossValidationOptions) -> CrossValidation:
    measures = parse_measures(options.measures)
    check_finetuning(options)
    collection = JudgedDataset(options.dataset, options.fields)
    folds = _folds(options, collection)
    fingerprints = {
        system: [model_fingerprint(model) for model in options.models(system)]
        for system in options.model_rows
    }
    folder = Path(options.output_dir)
    stage = FirstStage(replace(options, depth=options.first_stage_depth), collection)
    stages = first_stages(options, collection) | {options.rows[0]: stage}
    _refuse_inputs(options, stages)
    made_from = {
        **results_settings(options, collection, stages, fingerprints),
        "fold_contents": [fold.test for fold in folds],
    }
    check_results(folder / "results.json", made_from, options)
    files = FolderWithRecord(folder, options.rules)
    first_stage = _first_stage(options, collection, stage)
    recipes = Recipes(options, first_stage.negatives, files)
    fold_runs = FoldRuns(options, collection, first_stage, fingerprints, recipes)
    training_queries = recipes.check_training_queries(folds)
    fold_runs.check_models()

    pooling = Pooling(fold_runs, folds, len(options.candidates), collection, measures[0])
    runs, candidates = _runs(options, fold_runs, pooling)
    further = {row: stages[row] for row in options.rows if row in _first_stages(options)}
    paths = {row: folder / "runs" / f"{file_stem(row)}.run" for row in further}
    single = {options.rows[0]: first_stage.run, **retrieve(options, collection, further, paths)}
    fused_runs = FusedRuns(options, collection, folds, single, dict(runs))
    fusions = {}
    for condition in _conditions(options, fusions_of(options)):
        runs[condition.name], fusions[condition.name] = fused_runs.run(condition)
    per_query = measure_runs(
        {**{_key(row): run for row, run in single.items()}, **runs},
        collection.topics,
        collection.qrels,
        measures,
    )
    title = (
        f"{options.dataset}, {len(collection.topics)} queries, {len(folds)} folds, top"
        f" {options.depth}"
    )
    results = _results(options, title, training_queries, per_query)
    inputs = {
        "made_from": made_from,
        "models": fingerprints,
        "first_stage": stage.chosen,
        "fusions": fusions,
        "folds": [fold.test for fold in folds],
        **_record_of(training_queries),
        "chosen": {
            condition: [options.candidates[place] for place in places]
            for condition, places in candidates.items()
        },
    }
    _write(options, results, inputs, files)
    return results


def _runs(
    options: CrossValidationOptions, fold_runs: FoldRuns, pooling: Pooling
) -> tuple[dict[str, pd.DataFrame], dict[str, list[int]]]:
    """Read or make the run of each condition.

    Returns:
        The runs, and the place of the candidate that was taken for each fold, where there is a
        grid; both by the names of conditions.
    """
    runs: dict[str, pd.DataFrame] = {}
    candidates: dict[str, list[int]] = {}
    conditions = _conditions(options, options.model_rows)
    total = sum(pooling.steps if condition.query_count != 0 else 1 for condition in conditions)
    with tqdm(total=total, desc="cross-validate", unit="run", disable=options.quiet) as bar:
        for condition in conditions:
            path = Path(options.output_dir) / "runs" / f"{condition.name}.run"
            if condition.query_count == 0:
                bar.set_postfix_str(f"{condition.system}, not fine-tuned")
                runs[condition.name] = fold_runs.run_without_training(condition, path)
                bar.update()
                continue
            pooled = pooling.pool(condition, bar)
            if options.grid:
                candidates[condition.name] = pooled.candidates
            runs[condition.name] = fold_runs.pooled_run(
                path,
                {"parts": pooled.hashes, "chosen": pooled.candidates},
                partial(_same, pooled.run),
            )
    return runs, candidates


def _refuse_inputs(options: CrossValidationOptions, stages: Mapping[str, FirstStage]) -> None:
    """Refuse to write over the runs of first stages or the files of folds."""
    folder = Path(options.output_dir)
    conditions = _conditions(options, [*options.model_rows, *fusions_of(options)])
    names = [file_stem(row) for row in stages] + [condition.name for condition in conditions]
    runs = [folder / "runs" / f"{name}.run" for name in names]
    for stage in stages.values():
        refuse_first_stage(stage, [*runs, folder / "finetuning" / "first-stage.run"])
    for number in range(1, len(options.fold_files or ()) + 1):
        for file in options.fold_files or ():
            path = folder / "folds" / f"fold-{number}.train.txt"
            refuse_input(path, {"a file of a fold": file}, "--output-dir")


def _first_stage(
    options: CrossValidationOptions, collection: JudgedDataset, stage: FirstStage
) -> FirstStageRun:
    """Read or make the first stage's run, as deep as negatives are drawn, and cut it."""
    folder = Path(options.output_dir)
    settings = {**collection.identity, "first stage": stage.settings}
    path = folder / "finetuning" / "first-stage.run"
    depth = options.first_stage_depth
    rules: dict[str, Any] = {"versions": stage.versions, "rules": options.rules}
    run = stored_run(path, {**settings, "depth": depth}, stage.retrieve, **rules)
    settings |= {"depth": options.depth}
    first = stored_run(
        folder / "runs" / f"{file_stem(options.rows[0])}.run",
        {**settings, "from depth": depth},
        lambda: run[run["rank"] < options.depth],
        **rules,
    )
    return FirstStageRun(first, settings, stage.versions, path)


def _same(run: pd.DataFrame) -> pd.DataFrame:
    return run


def _folds(options: CrossValidationOptions, collection: JudgedDataset) -> list[Fold]:
    ids = collection.topics["qid"].tolist()
    if options.fold_files:
        parts = read_parts(options.fold_files, ids, f"dataset {options.dataset}")
    else:
        parts = draw_parts(ids, options.folds, options.seed)
    return folds_of(parts, validate=bool(options.grid))


def _first_stages(options: CrossValidationOptions) -> dict[str, str]:
    assert isinstance(options.first_stages, dict)
    return options.first_stages


def _key(first_stage: str) -> str:
    """The key of a first stage's measures; no name of a condition has a slash."""
    return f"/{first_stage}"


def _conditions(options: CrossValidationOptions, rows: Iterable[str]) -> list[Condition]:
    return [
        Condition(row, count, seed)
        for count in options.query_counts
        for row in rows
        for seed in options.seeds
    ]


def _results(
    options: CrossValidationOptions,
    title: str,
    training_queries: dict[str, list[TrainingQueries]],
    measured: dict[str, PerQuery],
) -> CrossValidation:
    """Average and test what was measured.

    Args:
        options: of the cross-validation.
        title: of the table.
        training_queries: how many queries there are to learn from, by system.
        measured: measure → qid → value, by the names of conditions and the keys of first stages.
    """
    per_query: dict[str, dict[str, PerQuery]] = {}
    deviations: dict[str, dict[str, dict[str, float]]] = {}
    for count in options.query_counts:
        stages = (options.rows[0], *_first_stages(options))
        rows = per_query[count_label(count)] = {row: measured[_key(row)] for row in stages}
        for system in (*options.model_rows, *fusions_of(options)):
            by_seed = [measured[Condition(system, count, seed).name] for seed in options.seeds]
            rows[system] = over_seeds(by_seed)
            if len(by_seed) > 1:
                means = averages({str(n): values for n, values in enumerate(by_seed)}).values()
                deviations.setdefault(count_label(count), {})[system] = {
                    measure: mean_and_deviation([mean[measure] for mean in means])[1]
                    for measure in by_seed[0]
                }
    tests = {count: paired_tests(rows, options.reference) for count, rows in per_query.items()}
    by_count_and_row = {(count, row): p for count, rows in tests.items() for row, p in rows.items()}
    p_values = corrected(by_count_and_row, options.correction)
    return CrossValidation(
        title=title,
        path=Path(options.output_dir),
        baseline=options.reference,
        per_query=per_query,
        means={count: averages(rows) for count, rows in per_query.items()},
        deviations=deviations,
        p_values={
            count: {row: p_values[count, row] for row in rows} for count, rows in tests.items()
        },
        correction=options.correction,
        learnt=_learnt(options, training_queries),
    )


def _learnt(
    options: CrossValidationOptions, training_queries: dict[str, list[TrainingQueries]]
) -> dict[str, str]:
    """How many queries each number of training queries stands for, such as 74 for all."""
    counts = sorted({queries.count for folds in training_queries.values() for queries in folds})
    everything = str(counts[0]) if len(counts) == 1 else f"{counts[0]}–{counts[-1]}"
    return {
        count_label(count): everything if count is None else count_label(count)
        for count in options.query_counts
    }


def _record_of(training_queries: dict[str, list[TrainingQueries]]) -> dict[str, Any]:
    return {
        "usable": {
            system: [queries.count for queries in folds]
            for system, folds in training_queries.items()
        },
        "shortages": {
            system: [shortage for queries in folds for shortage in queries.shortages]
            for system, folds in training_queries.items()
        },
    }


def _write(
    options: CrossValidationOptions,
    results: CrossValidation,
    inputs: dict[str, Any],
    files: FolderWithRecord,
) -> None:
    """Write the results first: they say what the table and the plot are made from."""
    record = {
        "options": written_options(options),
        "versions": versions(),
        **inputs,
        "baseline": results.baseline,
        "means": results.means,
        "deviations": results.deviations,
        "p_values": results.p_values,
        "per_query": results.per_query,
    }
    write_record(results.path / "results.json", record)
    files.write(results.path / "table.txt", results.table + "\n")
    files.write(results.path / "table.tex", results.latex)
    for kind in ("png", "svg"):
        files.write(results.path / f"plot.{kind}", draw(results, kind))
