"""Which weights of fields suit manuals and sites that have no queries to tune BM25 by?

    harp build SITE --output-dir BUILD --stages corpus graph --held-out-links 0.3
    harp collect BUILD --output-dir QUERIES/SITE --max-queries-per-page 10 --max-queries 500 \\
        --min-test-queries 100000
    python benchmarks/field_weights.py QUERIES/* --index-dir INDEXES

Up to 200 queries of each kind (terms of an index, held-out links) of each site are a set. For each
site, those weights are chosen that have the best mean of nDCG@10 over the sets of all other sites,
both kinds counting alike. They are compared with weights of 1 and with those of `harp adapt`; p is
that of a paired t-test against weights of 1, queries with the same relevant pages being a group. A
page whose links are held out has no anchor text, so that no anchor text is searched for links. The
other parameters are k1 = 0.9 and b = 0.4.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from statistics import fmean

import numpy as np
import pandas as pd

from harp_plugin.collections.dataset import JudgedDataset
from harp_plugin.commands.adapt.ranking import FIELD_WEIGHTS
from harp_plugin.evaluation.results import (
    groups_of_queries,
    measure_runs,
    paired_difference,
    parse_measures,
)
from harp_plugin.ranking.fielded import FieldedBm25, FieldedIndex

FIELDS = ("title", "headings", "text", "anchor_text")
VALUES = (2.0, 5.0, 10.0), (0.0, 0.25, 0.5, 1.0, 2.0), (0.25, 0.5), (0.5, 1.0)
"""Weights of each field that are tried."""
GRID = list(product(*VALUES))
ONES = (1.0, 1.0, 1.0, 1.0)
ADAPT = tuple(FIELD_WEIGHTS[name] for name in FIELDS)
KINDS = ("index", "link")
MOST = 200
Weights = tuple[float, ...]


@dataclass
class QuerySet:
    """Queries of one kind and one site, and the measures by weights."""

    site: str
    kind: str
    index: FieldedIndex
    topics: pd.DataFrame
    qrels: pd.DataFrame
    values: dict[Weights, dict[str, float]] = field(default_factory=dict)

    def measured(self, weights: Weights) -> dict[str, float]:
        """Qid → nDCG@10."""
        if self.kind == "link":
            weights = (*weights[:-1], 0.0)
        if weights not in self.values:
            by_field = dict(zip(self.index.fields, weights, strict=True))
            run = FieldedBm25(self.index, by_field, num_results=10).transform(self.topics)
            (measure,) = parse_measures(["nDCG@10"])
            measured = measure_runs({"": run}, self.topics, self.qrels, [measure])
            self.values[weights] = measured[""]["nDCG@10"]
        return self.values[weights]

    def mean(self, weights: Weights) -> float:
        """The mean of nDCG@10."""
        return float(np.mean([*self.measured(weights).values()]))

    def p_value(self, weights: Weights) -> float:
        """Of the paired t-test against weights of 1; 1 where there is no difference."""
        groups = groups_of_queries(self.qrels)
        p, _ = paired_difference(self.measured(weights), self.measured(ONES), groups)
        return 1.0 if p is None else p


def main() -> None:
    """Print a row for each set, and the means."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--index-dir", type=Path, required=True)
    options = parser.parse_args()
    sets = [one for folder in options.folders for one in read(folder, options.index_dir)]
    print("| set | queries | 1 each | of the other sites | p | of harp adapt | p | they chose |")
    print("|---|---|---|---|---|---|---|---|")
    rows = []
    for one in sets:
        chosen = best([other for other in sets if other.site != one.site])
        rows.append([one.mean(ONES), one.mean(chosen), one.mean(ADAPT)])
        cells = [f"{rows[-1][0]:.3f}"]
        for mean, weights in zip(rows[-1][1:], (chosen, ADAPT), strict=True):
            cells += [f"{mean:.3f}", f"{one.p_value(weights):.1g}"]
        name = f"{one.site}, {one.kind}"
        print(f"| {name} | {len(one.topics)} | {' | '.join(cells)} | {chosen} |", flush=True)
    for kind in KINDS:
        of_kind = [row for one, row in zip(sets, rows, strict=True) if one.kind == kind]
        print(kind, "in the mean:", np.mean(of_kind, axis=0).round(3))
    print("best of all:", best(sets))


def read(folder: Path, index_dir: Path) -> list[QuerySet]:
    """Read the sets of a folder of `harp collect` that have 30 queries."""
    dataset = JudgedDataset(f"harp:{folder}/test")
    index = FieldedIndex(f"harp:{folder}/test", index_dir / folder.name, FIELDS)
    kinds = dataset.topics["qid"].str.partition("-")[0]
    sets = []
    for kind in KINDS:
        topics = dataset.topics[kinds == kind]
        if len(topics) >= 30:
            topics = topics.sample(min(MOST, len(topics)), random_state=1).sort_index()
            qrels = dataset.qrels[dataset.qrels["qid"].isin(topics["qid"])]
            sets.append(QuerySet(folder.name, kind, index, topics, qrels))
    return sets


def best(sets: Sequence[QuerySet]) -> Weights:
    """Find the weights with the best mean, both kinds counting alike."""
    kinds = [[these for these in sets if these.kind == kind] for kind in KINDS]

    def worth(weights: Weights) -> float:
        return sum(fmean(one.mean(weights) for one in of_kind) for of_kind in kinds if of_kind)

    return max(GRID, key=worth)


if __name__ == "__main__":
    main()
