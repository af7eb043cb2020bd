"""Learnt fusion beside its first stage, with few training queries.

    python benchmarks/fusion.py vaswani=RUNS/vaswani cranfield=RUNS/cranfield

RUNS/vaswani is a folder of TREC runs of that ir_datasets collection, one file a system; the first
stage is named by --first (default BM25). For each number of training queries and each seed, weights
are learnt on queries drawn by the seed, and all other queries are ranked. A row of the table has
the gain over the first stage on those: its mean and its least over the seeds, and for how many
seeds it is significant, either way: two-sided paired t-tests over the queries, corrected by Holm
for all tests of a table. "noise" is a system of random scores.
Judgments are binary, because the grades of cranfield are documented in two opposite ways.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import ttest_rel
from statsmodels.stats.multitest import multipletests

from harp_plugin.collections.dataset import JudgedDataset
from harp_plugin.evaluation.results import measure_runs, parse_measures
from harp_plugin.evaluation.runs import ranked, read_run
from harp_plugin.ranking.fusion import fuse
from harp_plugin.ranking.fusion_weights import learn_weights
from harp_plugin.sampling import generator

Runs = dict[str, pd.DataFrame]


def with_noise(runs: Runs, first: str) -> Runs:
    """Add a system that gives the first stage's results random scores."""
    scores = generator(0, "noise").normal(size=len(runs[first]))
    return {**runs, "noise": ranked(runs[first].assign(score=scores))}


def fusions(runs: Runs, first: str) -> Iterator[list[str]]:
    """The first stage with each other system, and with all but noise."""
    others = [name for name in runs if name != first]
    for other in others:
        yield [first, other]
    if len(others) > 2:
        yield [first, *(name for name in others if name != "noise")]
    if len(others) > 1:
        yield [first, *others]


def gains(
    collection: JudgedDataset, runs: Runs, measure: str, train: int, seed: int, level: float
) -> tuple[np.ndarray, bool]:
    """Learn on some queries, and measure the gain of each other one.

    Returns:
        (test queries,) gains, and whether the first stage ranks alone.
    """
    order = generator(seed, "training queries").permutation(len(collection.topics))
    qids = collection.topics["qid"].to_numpy()[order]
    learnt = learn_weights(
        {name: run[run["qid"].isin(qids[:train])] for name, run in runs.items()},
        collection.qrels[collection.qrels["qid"].isin(qids[:train])],
        measure=measure,
        seed=seed,
        level=level,
    )
    test = collection.topics[collection.topics["qid"].isin(qids[train:])]
    held_out = {name: run[run["qid"].isin(test["qid"])] for name, run in runs.items()}
    rankings = {"first": held_out[next(iter(runs))], "fused": fuse(held_out, learnt.weights)}
    qrels = collection.qrels[collection.qrels["qid"].isin(test["qid"])]
    values = measure_runs(rankings, test, qrels, parse_measures([measure]))
    first, fused = (
        np.array(list(values[row][str(parse_measures([measure])[0])].values()))
        for row in ("first", "fused")
    )
    return fused - first, learnt.first_alone


def cells(collection: JudgedDataset, runs: Runs, arguments: Any) -> Iterator[dict[str, Any]]:
    """One cell for each fusion, measure and number of training queries, of all seeds."""
    for names in fusions(runs, arguments.first):
        chosen = {name: runs[name] for name in names}
        for measure in arguments.measures:
            for train in arguments.train:
                results = [
                    gains(collection, chosen, measure, train, seed, arguments.level)
                    for seed in range(arguments.seeds)
                ]
                p_values = [
                    float(ttest_rel(gain, np.zeros_like(gain)).pvalue) if gain.any() else 1.0
                    for gain, _ in results
                ]
                yield {
                    "fusion": " + ".join(names),
                    "measure": measure,
                    "train": train,
                    "means": [float(gain.mean()) for gain, _ in results],
                    "p": p_values,
                    "alone": sum(alone for _, alone in results),
                }


def table(name: str, queries: int, rows: list[dict[str, Any]], seeds: int) -> str:
    """A Markdown table; p-values are corrected by Holm over all cells and seeds."""
    corrected = multipletests([p for row in rows for p in row["p"]], method="holm")[1]
    lines = [
        f"### {name}, {queries} queries",
        "",
        f"| fusion | measure | training queries | mean gain of {seeds} seeds | least | first alone "
        "| seeds above, p < .05 | seeds below, p < .05 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row, p_values in zip(rows, corrected.reshape(len(rows), seeds), strict=True):
        means = np.array(row["means"])
        above, below = ((p_values < 0.05) & (sign * means > 0) for sign in (1, -1))
        lines.append(
            f"| {row['fusion']} | {row['measure']} | {row['train']} | {means.mean():+.4f} "
            f"| {means.min():+.4f} | {row['alone']} | {above.sum()} | {below.sum()} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("collections", nargs="+", metavar="DATASET=FOLDER")
    parser.add_argument("--first", default="BM25")
    parser.add_argument("--measures", nargs="+", default=["RR@10", "nDCG@10"])
    parser.add_argument("--train", nargs="+", type=int, default=[5, 10, 20, 50])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument(
        "--level", type=float, default=0.05, help="of the test of a gain; 1: no test"
    )
    arguments = parser.parse_args()
    for entry in arguments.collections:
        dataset, _, folder = entry.partition("=")
        collection = JudgedDataset(dataset)
        collection.qrels["label"] = (collection.qrels["label"] > 0).astype(int)
        runs = {path.stem: read_run(path) for path in sorted(Path(folder).glob("*.run"))}
        runs = {arguments.first: runs.pop(arguments.first), **runs}
        rows = list(cells(collection, with_noise(runs, arguments.first), arguments))
        print(table(dataset, len(collection.topics), rows, arguments.seeds), end="\n\n")


if __name__ == "__main__":
    main()
