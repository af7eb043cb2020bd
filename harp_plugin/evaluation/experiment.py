"""The experiment: first stage, rerankers, measures, files."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pandas as pd
import pyterrier as pt
from tqdm.auto import tqdm

from ..models import model_fingerprint
from ..ranking import HarpReranker
from .collection import Collection
from .first_stage import FirstStage
from .options import EvaluationOptions, slug
from .results import Results, averages, corrected, measure_runs, paired_tests, parse_measures
from .runs import ranked, stored_run, write_whole

PAIRS_AT_ONCE = 1000
PACKAGES = [
    *("harp-plugin", "ir-datasets", "ir-measures", "numpy", "pyterrier", "pyterrier-pisa", "scipy"),
    *("tokenizers", "torch", "transformers"),
]


def evaluate(options: EvaluationOptions) -> Results:
    """Rerank a first stage by each reranker and measure every ranking.

    Writes ``runs/<row>.run`` (TREC format) and ``results.json`` into ``options.output_dir``. A run
    that is there already and was made with the same options, model and queries is not made again.

    Raises:
        HarpError: the dataset, a measure, the first stage or a model is unknown or cannot be read,
            or the first stage retrieves nothing.
    """
    measures = parse_measures(options.measures)
    collection = Collection(options.dataset, options.fields)
    models = {row: fingerprints(given["model"]) for row, given in options.systems.items()}
    runs = _runs(options, collection, models)
    per_query = measure_runs(runs, collection.topics, collection.qrels, measures)
    results = Results(
        title=f"{options.dataset}, {len(collection.topics)} queries, top {options.depth}",
        path=Path(options.output_dir) / "results.json",
        baseline=options.reference,
        per_query=per_query,
        means=averages(per_query),
        p_values=corrected(paired_tests(per_query, options.reference), options.correction),
        correction=options.correction,
    )
    write_whole(results.path, _json(options, results, models))
    return results


def _runs(
    options: EvaluationOptions, collection: Collection, models: dict[str, str | list[str]]
) -> dict[str, pd.DataFrame]:
    folder = Path(options.output_dir) / "runs"
    stage = FirstStage(options, collection)
    settings = {**collection.identity, "depth": options.depth, "first stage": stage.settings}
    row = options.rows[0]
    first = stored_run(folder / f"{slug(row)}.run", settings, stage.retrieve)
    runs = {row: first}
    for name, arguments in options.systems.items():
        reranker = make_reranker(
            device=options.device, batch_tokens=options.batch_tokens, **arguments
        )
        runs[name] = stored_run(
            folder / f"{slug(name)}.run",
            {**settings, "reranker": arguments, "model": models[name]},
            partial(rerank, first, collection, reranker, name, options.quiet),
        )
    return runs


def make_reranker(model: str | list[str], **arguments: Any) -> pt.Transformer:
    """The reranker of a model, or the ensemble of several."""
    if isinstance(model, list):
        return HarpReranker.ensemble(model, **arguments)
    return HarpReranker(model, **arguments)


def fingerprints(model: str | list[str]) -> str | list[str]:
    """The fingerprint of a model, or of each in a list."""
    if isinstance(model, list):
        return [model_fingerprint(one) for one in model]
    return model_fingerprint(model)


def rerank(
    first: pd.DataFrame, collection: Collection, reranker: pt.Transformer, name: str, quiet: bool
) -> pd.DataFrame:
    """Rerank a run a few queries at a time, so that few texts are in memory at once."""
    queries = collection.topics.set_index("qid")["query"]
    parts = []
    with tqdm(total=len(first), desc=name, unit="pair", disable=quiet) as bar:
        for part in _few_queries(first):
            texts = collection.texts(part["docno"])
            part = part.assign(query=part["qid"].map(queries), text=part["docno"].map(texts))
            parts.append(ranked(reranker.transform(part)))
            bar.update(len(part))
    return pd.concat(parts, ignore_index=True)


def _few_queries(run: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Cut a run, whose queries lie together, between queries."""
    sizes = run.groupby("qid", sort=False).size()
    part = sizes.cumsum().sub(1) // PAIRS_AT_ONCE
    for _, rows in run.groupby(run["qid"].map(part), sort=False):
        yield rows.reset_index(drop=True)


def _json(options: EvaluationOptions, results: Results, models: dict[str, str | list[str]]) -> str:
    content = {
        "options": asdict(options),
        "versions": versions(),
        "models": models,
        "queries": len(next(iter(next(iter(results.per_query.values())).values()))),
        "baseline": results.baseline,
        "means": results.means,
        "p_values": results.p_values,
        "per_query": results.per_query,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def versions() -> dict[str, str | None]:
    """Versions of everything that decides what an experiment computes."""
    return {"python": platform.python_version()} | {p: _version(p) for p in PACKAGES}


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
