"""An experiment: a first stage is reranked, every ranking is measured, files are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..collections.dataset import JudgedDataset
from ..work.lock import one_writer
from ..work.records import write_record
from ..work.with_record import FolderWithRecord
from ..work.writing import remove_temporary
from .first_stage import first_stages
from .fused_runs import add_fusions, fusions_of
from .fusions import notes
from .learn_on import judged_runs, learning_datasets
from .options import EvaluationOptions
from .report import render
from .rerankers import fingerprints
from .results import Results, averages, corrected, measure_runs, paired_tests, parse_measures
from .results_record import check_results, results_settings, versions, written_options
from .single_runs import single_runs

__all__ = ["evaluate"]


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
    learn_on = learning_datasets(options, collection)
    made_from = results_settings(options, collection, stages, models)
    if learn_on:
        made_from["learn_on"] = {name: other.identity for name, other in learn_on.items()}
    check_results(path, made_from, options)
    runs = single_runs(options, collection, stages, models)
    learnt_from = {
        name: judged_runs(options, collection, other, stages, models)
        for name, other in learn_on.items()
    }
    fusions = add_fusions(options, collection, runs, learnt_from)
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
