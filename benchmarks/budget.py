"""How much does `harp adapt` gain with more time? A table and a picture of finished folders.

    harp adapt docs --site-root /cpp/= --output-dir s/30m-42 --budget 30m --seed 42
    python benchmarks/budget.py s/5m-42 s/30m-42 --picture budget.png

p: paired t-test of the last system against BM25 over fields, with Holm's correction.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from harp_plugin.commands.adapt import LEARNED, RERANKED
from harp_plugin.commands.adapt.budget import seconds_in
from harp_plugin.commands.steps import in_words
from harp_plugin.work.records import read_record

MEASURES = ("RR@10", "nDCG@10")
BASELINE = "fielded BM25"
SYSTEMS = (BASELINE, "cosine", "learned ranking", "cross-encoder")
FUSIONS = (RERANKED, LEARNED, "fielded BM25 + cosine")


class Row(NamedTuple):
    """What a folder gained.

    Attributes:
        name: of the folder.
        minutes: of its budget.
        results: its ``results.json``.
    """

    name: str
    minutes: float
    results: dict[str, Any]

    @property
    def fusion(self) -> str:
        """The fusion of all systems that there are."""
        return next(name for name in FUSIONS if name in self.results["means"])

    def gain(self, system: str, measure: str) -> float:
        """Return the gain over BM25 over fields, in per cent."""
        means = self.results["means"]
        return 100 * (means[system][measure] / means[BASELINE][measure] - 1)


def main() -> None:
    """Print a row for each folder, by its budget, and draw them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    rows = sorted(map(_row, options.folders), key=lambda row: (row.minutes, row.name))
    print(f"| folder | budget | queries | {' | '.join(SYSTEMS)} | fused | gain, % | p |")
    print("|---" * (6 + len(SYSTEMS)) + "|")
    for row in rows:
        means, p = row.results["means"], row.results["p_values"][row.fusion]
        systems = [means.get(name) for name in (*SYSTEMS, row.fusion)]
        cells = [" / ".join(f"{of[m]:.3f}" for m in MEASURES) if of else "–" for of in systems]
        cells.append(" / ".join(f"{row.gain(row.fusion, m):.1f}" for m in MEASURES))
        cells.append(" / ".join("–" if p[m] is None else f"{p[m]:.1g}" for m in MEASURES))
        budget = in_words(60 * row.minutes)
        print(f"| {row.name} | {budget} | {row.results['queries']} | {' | '.join(cells)} |")
    if options.picture:
        _draw(rows, options.picture)


def _row(folder: Path) -> Row:
    budget = read_record(folder / "plan.json")["asked"]["budget"]
    results = json.loads((folder / "evaluation" / "results.json").read_text(encoding="utf-8"))
    return Row(folder.name, seconds_in(budget) / 60, results)


def _draw(rows: list[Row], path: Path) -> None:
    """Draw a point for each folder, and a line through the means of the budgets."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 3.4))
    axes = figure.subplots()
    colors = {"fused": "tab:blue", "learned ranking": "tab:green", "cross-encoder": "tab:orange"}
    for name, color in colors.items():
        gains: dict[float, list[float]] = {}
        for row in rows:
            system = row.fusion if name == "fused" else name
            if system in row.results["means"]:
                gains.setdefault(row.minutes, []).append(row.gain(system, "nDCG@10"))
        label = "all, fused" if name == "fused" else f"{name} alone"
        axes.plot([*gains], [*map(mean, gains.values())], color=color, label=label)
        for minutes, of_budget in gains.items():
            axes.plot([minutes] * len(of_budget), of_budget, "o", color=color, markersize=4)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xlabel("--budget, minutes on two cores")
    axes.set_ylabel("nDCG@10 against tuned BM25\nover fields, per cent")
    axes.legend(frameon=False, fontsize=9)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
