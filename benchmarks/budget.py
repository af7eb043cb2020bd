"""How much does `harp adapt` gain with more time? A table and a picture of finished folders.

    harp adapt docs --site-root /cpp/= --output-dir s/30m-42 --budget 30m --seed 42
    python benchmarks/budget.py s/30m-42 s/2h-42 --picture budget.png

The systems are fused by weights that are learnt here from the runs of dev, as `harp adapt` learns
them, so that folders of older versions can be compared with new ones. p: paired t-test against BM25
over fields, not corrected.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from harp_plugin.collections.dataset import JudgedDataset
from harp_plugin.commands.adapt.budget import in_words, seconds_in
from harp_plugin.evaluation.results import measure_runs, paired_tests, parse_measures
from harp_plugin.evaluation.runs import read_run
from harp_plugin.ranking.fusion import fuse
from harp_plugin.ranking.fusion_weights import learn_weights
from harp_plugin.work.records import read_record

MEASURES = ["RR@10", "nDCG@10"]
SYSTEMS = ("fielded BM25", "cosine", "cross-encoder")
FUSION = "all three"


class Row(NamedTuple):
    """What a folder gained.

    Attributes:
        name: of the folder.
        minutes: of its budget.
        queries: of test.
        means: system → measure → value.
        p: measure → p-value of the fusion against BM25 over fields.
    """

    name: str
    minutes: float
    queries: int
    means: dict[str, dict[str, float]]
    p: dict[str, float | None]

    def gain(self, system: str, measure: str) -> float:
        """Return the gain over BM25 over fields, in per cent."""
        return 100 * (self.means[system][measure] / self.means[SYSTEMS[0]][measure] - 1)


def main() -> None:
    """Print a row for each folder, by its budget, and draw them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    rows = sorted(map(_row, options.folders), key=lambda row: (row.minutes, row.name))
    print(f"| folder | budget | queries | {' | '.join((*SYSTEMS, FUSION))} | gain, % | p |")
    print("|---" * (6 + len(SYSTEMS)) + "|")
    for row in rows:
        cells = []
        for system in (*SYSTEMS, FUSION):
            values = row.means.get(system)
            cells.append(" / ".join(f"{values[m]:.3f}" for m in MEASURES) if values else "–")
        cells.append(" / ".join(f"{row.gain(FUSION, m):.1f}" for m in MEASURES))
        cells.append(" / ".join("–" if row.p[m] is None else f"{row.p[m]:.1g}" for m in MEASURES))
        budget = in_words(60 * row.minutes)
        print(f"| {row.name} | {budget} | {row.queries} | {' | '.join(cells)} |")
    if options.picture:
        _draw(rows, options.picture)


def _row(folder: Path) -> Row:
    collection = f"harp:{folder / 'collection'}"
    test, dev = (JudgedDataset(f"{collection}/{split}") for split in ("test", "dev"))
    on_test = folder / "evaluation" / "runs"
    on_dev = next((folder / "evaluation" / "train-datasets").glob("*/runs"))
    files = {system: f"{system.replace(' ', '-').lower()}.run" for system in SYSTEMS}
    there = [system for system in SYSTEMS if (on_test / files[system]).is_file()]
    runs, learnt_from = (
        {system: read_run(runs / files[system]) for system in there} for runs in (on_test, on_dev)
    )
    learnt = learn_weights(learnt_from, dev.qrels, measure="nDCG@10")
    runs[FUSION] = fuse(runs, learnt.weights)
    values = measure_runs(runs, test.topics, test.qrels, parse_measures(MEASURES))
    means = {name: {m: mean(of[m].values()) for m in MEASURES} for name, of in values.items()}
    p = paired_tests({name: values[name] for name in (SYSTEMS[0], FUSION)}, SYSTEMS[0])[FUSION]
    budget = read_record(folder / "plan.json")["asked"]["budget"]
    return Row(folder.name, seconds_in(budget) / 60, len(test.topics), means, p)


def _draw(rows: list[Row], path: Path) -> None:
    """Draw a point for each folder, and a line through the means of the budgets."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 3.4))
    axes = figure.subplots()
    for system, color in ((FUSION, "tab:blue"), ("cross-encoder", "tab:orange")):
        found = [row for row in rows if system in row.means]
        gains: dict[float, list[float]] = {}
        for row in found:
            gains.setdefault(row.minutes, []).append(row.gain(system, "nDCG@10"))
        name = "all three, fused" if system == FUSION else f"{system} alone"
        axes.plot([*gains], [*map(mean, gains.values())], color=color, label=name)
        for minutes, of_budget in gains.items():
            axes.plot([minutes] * len(of_budget), of_budget, "o", color=color, markersize=4)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xlabel("--budget, minutes of one core")
    axes.set_ylabel("nDCG@10 against tuned BM25\nover fields, per cent")
    axes.legend(frameon=False, fontsize=9)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
