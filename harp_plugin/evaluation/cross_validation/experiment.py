"""The cross-validation: folds, runs of conditions, measures, tests and files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pandas as pd
from tqdm.auto import tqdm

from ...collections.dataset import JudgedDataset
from ...collections.judged_queries import few_shot_order
from ...models.loading import model_fingerprint
from ...work.artifact import Artifact, Provenance
from ...work.lock import one_writer
from ...work.writing import remove_temporary
from ..experiment import results_artifact, results_text
from ..first_stage import FirstStage, first_stage, first_stages
from ..folds import Fold, draw_parts, folds_of, read_parts
from ..fusions import Judged, Learning, fused_run
from ..results import averages, corrected, measure_runs, paired_tests, parse_measures
from .finetuning import Condition, Finetuning, TrainingQueries
from .fold_runs import FoldRuns
from .options import CrossValidationOptions, count_label
from .plot import draw
from .results import CrossValidation, over_seeds

__all__ = ["cross_validate"]

PerQuery = dict[str, dict[str, float]]
_FOLDERS = ("runs", "folds", "finetuning")


def cross_validate(options: CrossValidationOptions) -> CrossValidation:
    """Fine-tune each system on each fold's training queries and rank the queries held out.

    The folds' held-out rankings of a system make up one run over all queries (PROP, 4.4.3), at
    each number of training queries (HARP, Figure 4). Writes into ``options.output_dir``: ``runs``
    (TREC format), ``folds`` (the ids of training queries), ``finetuning`` (log and manifest of each
    fine-tuning), ``results.json``, ``table.txt``, ``table.tex``; where matplotlib is installed,
    ``plot.png`` and ``plot.svg`` too.
    What is there already and was made with the same options, models and queries is not made again.
    What was made from something else is replaced only with ``options.overwrite``.

    Raises:
        HarpError: the dataset, a measure, the first stage, a model, the folds or an option of
            fine-tuning is at fault, which is found before anything is trained; or a fine-tuning
            fails; or something in the folder may not be replaced.
    """
    folder = Path(options.output_dir)
    with one_writer(folder):
        for path in (folder, *(folder / name for name in _FOLDERS)):
            remove_temporary(path)
        return _cross_validate(options)


def _cross_validate(options: CrossValidationOptions) -> CrossValidation:
    measures = parse_measures(options.measures)
    finetuning = Finetuning(options)
    finetuning.check()
    collection = JudgedDataset(options.dataset, options.fields)
    folds = _folds(options, collection)
    contents = [fold.test for fold in folds]
    models = {
        system: [model_fingerprint(model) for model in options.models(system)]
        for system in options.model_rows
    }
    stage = first_stage(replace(options, depth=options.first_stage_depth), collection)
    stages = first_stages(options, collection) | {options.rows[0]: stage}
    files = results_artifact(options, collection, stages, models, fold_contents=contents)
    stage, first = _first_stage(options, stage, finetuning.negatives)
    _write_folds(options, folds)
    fold_runs = FoldRuns(options, collection, folds, stage, first, models, finetuning)
    training_queries = finetuning.check_training_queries(folds)
    fold_runs.check_models()

    single = {options.rows[0]: first}
    for row in options.first_stages:
        single[row] = stages[row].stored(options.run_paths[row])
    runs, chosen = _runs(options, fold_runs)
    judged, fusions = Judged({**single, **runs}, collection.qrels), {}
    for condition in _conditions(options, options.fused_rows):
        fused = _fused_run(options, condition, folds, judged)
        runs[condition.name], fusions[condition.name] = fused
    title = f"{options.dataset}, {len(collection.topics)} queries, {len(folds)} folds"
    title += f", top {options.depth}"
    of_stages, of_conditions = (
        measure_runs(of, collection.topics, collection.qrels, measures) for of in (single, runs)
    )
    results = _results(options, title, training_queries, of_stages, of_conditions)
    record = results_text(
        options,
        results,
        models=models,
        first_stage=stage.chosen,
        fusions=fusions,
        folds=contents,
        chosen=chosen,
        deviations=results.deviations,
        training_queries=training_queries,
    )
    _write(files, results, record)
    return results


def _write(files: Artifact, results: CrossValidation, record: str) -> None:
    kinds = ("png", "svg") if find_spec("matplotlib") else ()
    plots = {f"plot.{kind}": draw(results, kind) for kind in kinds}
    tables = {"table.txt": f"{results.table}\n", "table.tex": results.latex}
    files.write({"results.json": record, **tables, **plots})


def _runs(
    options: CrossValidationOptions, fold_runs: FoldRuns
) -> tuple[dict[str, pd.DataFrame], dict[str, list[dict[str, Any]]]]:
    """Read or make the run of each condition.

    Returns:
        The runs, and the candidate that was taken for each fold, where there is a grid; both by the
        names of conditions.
    """
    runs: dict[str, pd.DataFrame] = {}
    chosen: dict[str, list[dict[str, Any]]] = {}
    conditions = _conditions(options, options.model_rows)
    total = sum(map(fold_runs.steps, conditions))
    with tqdm(total=total, desc="cross-validate", unit="run", disable=options.quiet) as bar:
        for condition in conditions:
            runs[condition.name], candidates = fold_runs.run(condition, bar)
            if options.grid and candidates:
                chosen[condition.name] = [options.candidates[index] for index in candidates]
    return runs, chosen


def _fused_run(
    options: CrossValidationOptions, condition: Condition, folds: Sequence[Fold], judged: Judged
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read or make the run of a fusion under a condition.

    A fold's weights are learnt on as many of its training queries as the models learn from. The
    scores of these queries are those of their own folds' models, which have not seen them. Without
    a query to learn from, the first row ranks alone.

    Args:
        options: of the cross-validation.
        condition: whose system is the fusion.
        folds: each is held out once.
        judged: the runs of first stages by row, and those of models' conditions by their names.

    Returns:
        The run, and what the record holds of its weights.
    """
    fusion, count = options.fused_rows[condition.system], condition.query_count
    if fusion.is_learnt and count == 0:
        alone = {row: float(row == fusion.of[0]) for row in fusion.of}
        fusion = replace(fusion, weights=alone, measure=None)
    models = {row: replace(condition, system=row).name for row in options.model_rows}
    runs = {row: judged.runs[models.get(row, row)] for row in options.rows if row in fusion.of}
    learnings = [
        Learning(few_shot_order(fold.train, condition.seed)[:count], fold.test) for fold in folds
    ]
    folder = Path(options.output_dir) / "runs"
    return fused_run(
        folder / f"{condition.name}.run",
        fusion,
        Judged(runs, judged.qrels),
        learnings,
        paths=options.run_paths | {row: folder / f"{name}.run" for row, name in models.items()},
        options=options,
        seed=condition.seed,
    )


def _first_stage(
    options: CrossValidationOptions, stage: FirstStage, path: Path
) -> tuple[FirstStage, pd.DataFrame]:
    """Read or make the first stage's run, as deep as negatives are drawn, and cut it.

    Args:
        options: of the cross-validation.
        stage: as deep as negatives are drawn.
        path: of its run.

    Returns:
        The first stage as deep as the options say, and its run.
    """
    run, shallow = stage.stored(path), replace(stage, options=options)
    settings = {**stage.settings, "from depth": stage.options.depth}
    cut = replace(shallow, settings=settings, search=lambda _: run)
    return shallow, cut.stored(options.run_paths[options.rows[0]])


def _folds(options: CrossValidationOptions, collection: JudgedDataset) -> list[Fold]:
    ids = collection.topics["qid"].tolist()
    if options.fold_files:
        parts = read_parts(options.fold_files, ids, f"dataset {options.dataset}")
    else:
        parts = draw_parts(ids, options.folds, options.seed)
    return folds_of(parts, validate=bool(options.grid))


def _write_folds(options: CrossValidationOptions, folds: Sequence[Fold]) -> None:
    """Write the ids of each fold's training queries, which fine-tuning reads."""
    path = Path(options.output_dir) / "folds"
    made_from = Provenance({"train": [fold.train for fold in folds]})

    def fill(temporary: Path) -> None:
        for fold in folds:
            text = "".join(f"{query}\n" for query in fold.train)
            (temporary / fold.train_file).write_text(text, encoding="utf-8")

    Artifact(path, "folds", made_from, options.rules).make(fill)


def _conditions(options: CrossValidationOptions, rows: Iterable[str]) -> list[Condition]:
    places = product(options.query_counts, rows, options.seeds)
    return [Condition(row, count, seed) for count, row, seed in places]


def _results(
    options: CrossValidationOptions,
    title: str,
    training_queries: dict[str, list[TrainingQueries]],
    of_stages: dict[str, PerQuery],
    of_conditions: dict[str, PerQuery],
) -> CrossValidation:
    """Average and test what was measured.

    Args:
        options: of the cross-validation.
        title: of the table.
        training_queries: how many queries there are to learn from, by system.
        of_stages: measure → qid → value, by the rows of first stages.
        of_conditions: the same, by the names of conditions.
    """
    per_query: dict[str, dict[str, PerQuery]] = {}
    deviations: dict[str, dict[str, dict[str, float]]] = {}
    for count in options.query_counts:
        rows = per_query[count_label(count)] = dict(of_stages)
        for system in (*options.model_rows, *options.fused_rows):
            names = [Condition(system, count, seed).name for seed in options.seeds]
            by_seed = [of_conditions[name] for name in names]
            rows[system] = over_seeds(by_seed)
            if len(by_seed) > 1:
                deviations.setdefault(count_label(count), {})[system] = {
                    measure: stdev(fmean(values[measure].values()) for values in by_seed)
                    for measure in by_seed[0]
                }
    once = of_stages if options.reference in of_stages else {}  # the same at each number of queries
    tests = {
        ("" if row in once else label, row): by_measure
        for label, rows in per_query.items()
        for row, by_measure in paired_tests(rows, options.reference).items()
    }
    p_values: dict[str, dict[str, dict[str, float | None]]] = {label: {} for label in per_query}
    for (label, row), by_measure in corrected(tests, options.correction).items():
        for each in [label] if label else per_query:
            p_values[each][row] = by_measure
    learnt = sorted({number for folds in training_queries.values() for number, *_ in folds})
    everything = "–".join(map(str, dict.fromkeys((learnt[0], learnt[-1]))))
    return CrossValidation(
        title=title,
        path=Path(options.output_dir),
        baseline=options.reference,
        per_query=per_query,
        means={label: averages(rows) for label, rows in per_query.items()},
        deviations=deviations,
        p_values=p_values,
        correction=options.correction,
        learnt={label: everything if label == count_label(None) else label for label in per_query},
    )
