"""What is each group of features worth to the learned ranking? Finished folders of `harp adapt`.

    python benchmarks/learned_ranking.py s/42 s/43 s/44

The features of each folder's ranker are computed once for its train and test queries. Then a
ranker learns from all of them, and from all but one group. Measures are those of the test queries;
a gain is that of the group, averaged over the folders' means, and p that of a paired t-test over
the queries of all folders. Queries that several folders test count once for each.
"""

from __future__ import annotations

import argparse
import re
from functools import reduce
from operator import rshift
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import ttest_rel

from harp_plugin.collections.dataset import JudgedDataset
from harp_plugin.evaluation.results import measure_runs, parse_measures
from harp_plugin.ranking import HarpPipeline
from harp_plugin.ranking.learned import LearnedRanker

MEASURES = ["RR@10", "nDCG@10"]
GROUPS = {
    "nothing": "^$",
    "cosine": "^cosine$",
    "word similarity": "^word similarity$",
    "score of BM25 and cosine": "^BM25 and cosine$",
    "all of the title": "^title: ",
    "all of the headings": "^headings: ",
    "all of the text": "^text: ",
    "words covered": "covered$",
    "density, counts": "density$|log counts$",
    "bigrams": "bigrams$",
    "first position": "first position$",
}
"""What the names of the features that are left out match."""
Values = dict[str, dict[str, np.ndarray]]
"""Row → measure → (queries,) values."""


def main() -> None:
    """Print a row for each group."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    options = parser.parse_args()
    of_folders = [_values(folder) for folder in options.folders]
    print(f"| without | {' | '.join(f'{m} | its gain | p' for m in MEASURES)} |")
    print("|---" * (1 + 3 * len(MEASURES)) + "|")
    for row in of_folders[0]:
        cells = [cell for measure in MEASURES for cell in _cells(of_folders, row, measure)]
        print(f"| {row} | {' | '.join(cells)} |")


def _cells(of_folders: list[Values], row: str, measure: str) -> list[str]:
    of_row, of_all = ([values[name][measure] for values in of_folders] for name in (row, "nothing"))
    mean, mean_of_all = (np.mean([*map(np.mean, values)]) for values in (of_row, of_all))
    if row == "nothing":
        return [f"{mean:.4f}", "", ""]
    p = ttest_rel(np.concatenate(of_all), np.concatenate(of_row)).pvalue
    return [f"{mean:.4f}", f"{mean_of_all - mean:+.4f}", f"{p:.2g}"]


def _values(folder: Path) -> Values:
    """Learn with all features and without each group; measure the test queries."""
    pipeline: Any = HarpPipeline.load(folder / "ranker").pipeline
    splits = {
        name: JudgedDataset(f"harp:{folder.absolute() / 'collection'}/{name}")
        for name in ("train", "test")
    }
    *before, ranker = pipeline
    stages = reduce(rshift, before)
    results = {name: stages(split.topics) for name, split in splits.items()}
    runs: dict[str, Any] = {}
    for row, pattern in GROUPS.items():
        kept = np.array([not re.search(pattern, name) for name in ranker.feature_names])
        train, test = (_with_features(results[name], kept) for name in splits)
        learner = LearnedRanker(seed=ranker.seed).fit(train, splits["train"].qrels)
        runs[row] = learner(test)
        print(f"{folder}: {row}", flush=True)
    judged = splits["test"]
    measured = measure_runs(runs, judged.topics, judged.qrels, parse_measures(MEASURES))
    return {
        row: {m: np.array([*values[m].values()]) for m in MEASURES}
        for row, values in measured.items()
    }


def _with_features(results: pd.DataFrame, kept: np.ndarray) -> pd.DataFrame:
    return results.assign(features=[features[kept] for features in results["features"]])


if __name__ == "__main__":
    main()
