"""The experiment: folds, trials, pooled runs, measures, files."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm.auto import tqdm

from ...collections.judged_dataset import JudgedDataset
from ...files.locks import one_writer
from ...files.output_paths import refuse_input
from ...files.records import write_record
from ...files.with_record import FolderWithRecord
from ...files.writing import remove_temporary
from ...models.loading import model_fingerprint
from ...ranking.versions import scoring_versions
from ..experiment import (
    check_results,
    refuse_first_stage,
    results_settings,
    versions,
    written_options,
)
from ..first_stage import FirstStage
from ..options import file_stem
from ..results import (
    averages,
    corrected,
    measure_runs,
    paired_tests,
    parse_measures,
)
from ..runs import ranked, stored_run
from .folds import Fold, draw_parts, folds_of, read_parts
from .options import CrossValidationOptions, count_label
from .plot import draw
from .results import CrossValidation, mean_and_deviation, over_seeds
from .trials import Cell, Trial, Trials, check_finetuning

PerQuery = dict[str, dict[str, float]]
FOLDERS = ("runs", "folds", "finetuning")


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
        for place in (folder, *(folder / name for name in FOLDERS)):
            remove_temporary(place)
        return _cross_validate(options)


def _cross_validate(options: CrossValidationOptions) -> CrossValidation:
    measures = parse_measures(options.measures)
    check_finetuning(options)
    collection = JudgedDataset(options.dataset, options.fields)
    folds = _folds(options, collection)
    models = {
        system: [model_fingerprint(model) for model in options.models(system)]
        for system in options.row_names
    }
    folder = Path(options.output_dir)
    deep = replace(options, depth=max(options.depth, options.negatives_depth))
    stage = FirstStage(deep, collection)
    _refuse_inputs(options, stage)
    made_from = {
        **results_settings(options, collection, stage, models),
        "fold_contents": [fold.test for fold in folds],
    }
    check_results(folder / "results.json", made_from, options)
    ledger = FolderWithRecord(folder, options.rules)
    first, settings, negatives = _first_stage(options, collection, stage, deep.depth)
    packages = {**stage.versions, **scoring_versions()}
    trials = Trials(options, collection, first, negatives, settings, models, packages, ledger)
    trials.check(folds)

    chosen: dict[str, list[int]] = {}
    runs: dict[Cell | None, pd.DataFrame] = {None: first}
    cells = _cells(options)
    a_cell = len(folds) * len(options.candidates)
    total = sum(a_cell if cell.count != 0 else 1 for cell in cells)
    with tqdm(total=total, desc="cross-validate", unit="trial", disable=options.quiet) as bar:
        for cell in cells:
            path = folder / "runs" / f"{cell.name}.run"
            if cell.count == 0:
                bar.set_postfix_str(f"{cell.system}, not fine-tuned")
                runs[cell] = trials.zero_shot(cell, path)
                bar.update()
                continue
            pool = _Pool(collection, measures[0], trials, bar)
            pooled = pool.run(cell, folds, len(options.candidates))
            if options.grid:
                chosen[cell.name] = pool.chosen
            parts = {"settings": settings, "parts": pool.parts, "chosen": pool.chosen}
            runs[cell] = stored_run(
                path, parts, partial(_same, pooled), versions=packages, rules=options.rules
            )
    names = {cell: "" if cell is None else cell.name for cell in runs}
    per_query = measure_runs(
        {names[cell]: run for cell, run in runs.items()},
        collection.topics,
        collection.qrels,
        measures,
    )
    results = _results(options, collection, trials, len(folds), per_query)
    found = {
        "made_from": made_from,
        "models": models,
        "folds": [fold.test for fold in folds],
        "usable": trials.usable,
        "shortages": trials.shortages,
        "chosen": {cell: [options.candidates[n] for n in of] for cell, of in chosen.items()},
    }
    _write(options, results, found, ledger)
    return results


def _refuse_inputs(options: CrossValidationOptions, stage: FirstStage) -> None:
    """Refuse to write over the first stage's run or the files of folds."""
    folder = Path(options.output_dir)
    runs = [folder / "runs" / f"{file_stem(options.rows[0])}.run"]
    runs += [folder / "runs" / f"{cell.name}.run" for cell in _cells(options)]
    refuse_first_stage(stage, [*runs, folder / "finetuning" / "first-stage.run"])
    for number in range(1, len(options.fold_files or ()) + 1):
        for given in options.fold_files or ():
            path = folder / "folds" / f"fold-{number}.train.txt"
            refuse_input(path, {"a file of a fold": given}, "--output-dir")


def _first_stage(
    options: CrossValidationOptions, collection: JudgedDataset, stage: FirstStage, depth: int
) -> tuple[pd.DataFrame, dict[str, Any], Path]:
    """The run that is reranked, what it depends on, and a file as deep as negatives are drawn."""
    folder = Path(options.output_dir)
    settings = {**collection.identity, "first stage": stage.settings}
    path = folder / "finetuning" / "first-stage.run"
    rules: dict[str, Any] = {"versions": stage.versions, "rules": options.rules}
    run = stored_run(path, {**settings, "depth": depth}, stage.retrieve, **rules)
    settings |= {"depth": options.depth}
    first = stored_run(
        folder / "runs" / f"{file_stem(options.rows[0])}.run",
        {**settings, "from depth": depth},
        lambda: run[run["rank"] < options.depth],
        **rules,
    )
    return first, settings, path


def _same(run: pd.DataFrame) -> pd.DataFrame:
    return run


class _Pool:
    """Puts the held-out rankings of a cell's folds together."""

    def __init__(self, collection: JudgedDataset, measure: Any, trials: Trials, bar: tqdm) -> None:
        self.chosen: list[int] = []
        self.parts: list[str] = []
        self._collection = collection
        self._measure = measure
        self._trials = trials
        self._bar = bar

    def run(self, cell: Cell, folds: list[Fold], candidates: int) -> pd.DataFrame:
        parts = [self._held_out(cell, fold, candidates) for fold in folds]
        pooled = pd.concat(parts, ignore_index=True)
        place = {qid: n for n, qid in enumerate(self._collection.topics["qid"])}
        return ranked(pooled.sort_values("qid", key=lambda qid: qid.map(place), kind="stable"))

    def _held_out(self, cell: Cell, fold: Fold, candidates: int) -> pd.DataFrame:
        runs = []
        for candidate in range(candidates):
            trial = Trial(cell, fold, candidate)
            self._bar.set_postfix_str(str(trial))
            runs.append(self._trials.held_out(trial))
            self.parts.append(self._trials.hash_of(trial))
            self._bar.update()
        values = [self._validated(run, fold) for run in runs] if fold.validation else [0.0]
        best = values.index(max(values))
        self.chosen.append(best)
        return runs[best][runs[best]["qid"].isin(fold.test)]

    def _validated(self, run: pd.DataFrame, fold: Fold) -> float:
        topics, qrels = self._collection.topics, self._collection.qrels
        if run.empty:
            return 0.0
        per_query = measure_runs(
            {"run": run},
            topics[topics["qid"].isin(fold.validation)],
            qrels[qrels["qid"].isin(fold.validation)],
            [self._measure],
        )
        return averages(per_query)["run"][str(self._measure)]


def _folds(options: CrossValidationOptions, collection: JudgedDataset) -> list[Fold]:
    ids = collection.topics["qid"].tolist()
    if options.fold_files:
        parts = read_parts(options.fold_files, ids, f"dataset {options.dataset}")
    else:
        parts = draw_parts(ids, options.folds, options.seed)
    return folds_of(parts, validate=bool(options.grid))


def _cells(options: CrossValidationOptions) -> list[Cell]:
    return [
        Cell(system, count, seed)
        for count in options.query_counts
        for system in options.row_names
        for seed in options.seeds
    ]


def _results(
    options: CrossValidationOptions,
    collection: JudgedDataset,
    trials: Trials,
    folds: int,
    of_runs: dict[str, PerQuery],
) -> CrossValidation:
    per_query: dict[str, dict[str, PerQuery]] = {}
    deviations: dict[str, dict[str, dict[str, float]]] = {}
    for count in options.query_counts:
        per_query[count_label(count)] = {options.rows[0]: of_runs[""]}
        for system in options.row_names:
            seeds = [of_runs[Cell(system, count, seed).name] for seed in options.seeds]
            per_query[count_label(count)][system] = over_seeds(seeds)
            if len(seeds) > 1:
                means = averages({str(n): one for n, one in enumerate(seeds)}).values()
                deviations.setdefault(count_label(count), {})[system] = {
                    measure: mean_and_deviation([one[measure] for one in means])[1]
                    for measure in of_runs[""]
                }
    tests = {count: paired_tests(rows, options.reference) for count, rows in per_query.items()}
    each = {(count, row): p for count, rows in tests.items() for row, p in rows.items()}
    together = corrected(each, options.correction)
    learnt = sorted({usable for system in trials.usable.values() for usable in system})
    everything = str(learnt[0]) if len(learnt) == 1 else f"{learnt[0]}–{learnt[-1]}"
    return CrossValidation(
        title=f"{options.dataset}, {len(collection.topics)} queries, {folds} folds, top"
        f" {options.depth}",
        path=Path(options.output_dir),
        baseline=options.reference,
        per_query=per_query,
        means={count: averages(rows) for count, rows in per_query.items()},
        deviations=deviations,
        p_values={
            count: {row: together[count, row] for row in rows} for count, rows in tests.items()
        },
        correction=options.correction,
        learnt={
            count_label(c): everything if c is None else count_label(c)
            for c in options.query_counts
        },
    )


def _write(
    options: CrossValidationOptions,
    results: CrossValidation,
    found: dict[str, Any],
    ledger: FolderWithRecord,
) -> None:
    """Write the results first: they say what the table and the plot are made from."""
    record = {
        "options": written_options(options),
        "versions": versions(),
        **found,
        "baseline": results.baseline,
        "means": results.means,
        "deviations": results.deviations,
        "p_values": results.p_values,
        "per_query": results.per_query,
    }
    write_record(results.path / "results.json", record)
    ledger.write(results.path / "table.txt", results.table + "\n")
    ledger.write(results.path / "table.tex", results.latex)
    for kind in ("png", "svg"):
        ledger.write(results.path / f"plot.{kind}", draw(results, kind))
