"""The results of a cross-validation: measures by system and number of training queries."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import pandas as pd

from ..results import star_note, starred, text_blocks

__all__ = ["CrossValidation", "over_seeds"]

_ByRow = dict[str, dict[str, float]]
_SIGNS = {"\\": "backslash", "^": "asciicircum", "~": "asciitilde", "<": "less", ">": "greater"}
_LATEX = {ord(sign): rf"\text{name}{{}}" for sign, name in _SIGNS.items()}
_LATEX |= {ord(sign): rf"\{sign}" for sign in "&%$#_{}"}
"""Characters with a meaning in LaTeX, and how it prints them."""


@dataclass(frozen=True)
class CrossValidation:
    """Measures over all queries, each ranked by a model that has not seen it.

    Attributes:
        title: dataset, numbers of queries and of folds, depth.
        path: the folder that was written.
        baseline: the row that paired tests compare with.
        per_query: number of training queries → row → measure → qid → value; with several seeds the
            mean over them.
        means: number of training queries → row → measure → mean over queries.
        deviations: number of training queries → row → measure → standard deviation of that mean
            over the seeds; empty with one seed.
        p_values: number of training queries → row → measure → p of the two-sided paired t-test
            against the baseline at that number; None where there is no difference to test.
        correction: of a measure's p-values for the number of tests, ``none`` or ``holm``.
        learnt: number of training queries → how many those are, such as ``74`` for ``all``.
    """

    title: str
    path: Path
    baseline: str
    per_query: dict[str, dict[str, dict[str, dict[str, float]]]]
    means: dict[str, _ByRow]
    deviations: dict[str, _ByRow]
    p_values: dict[str, dict[str, dict[str, float | None]]]
    correction: str
    learnt: dict[str, str]

    @property
    def counts(self) -> list[str]:
        """The numbers of training queries."""
        return list(self.means)

    @property
    def rows(self) -> list[str]:
        """The first stage and the systems."""
        return list(next(iter(self.means.values())))

    @property
    def measures(self) -> list[str]:
        """What is measured."""
        return list(next(iter(next(iter(self.means.values())).values())))

    @property
    def table(self) -> str:
        """Means as text of at most 80 columns; a star marks p < 0.05 against the baseline."""
        blocks = [self.title]
        for measure in self.measures:
            of_measure = "\n".join(text_blocks(self.by_count(measure), self.tests(measure)))
            blocks.append(f"{measure}, by the number of training queries\n{of_measure}")
        if "*" in "".join(blocks[1:]):
            blocks.append(star_note(self.baseline, self.correction))
        return "\n\n".join(blocks)

    @property
    def latex(self) -> str:
        """The table in LaTeX, for the package booktabs."""
        cells = {
            (measure, count): [self._cell(row, measure, count) for row in self.rows]
            for measure in self.measures
            for count in self.counts
        }
        frame = pd.DataFrame(cells, index=self.rows)
        caption = f"{self.title}. {star_note(self.baseline, self.correction)}".translate(_LATEX)
        return frame.to_latex(escape=True, multicolumn_format="c", caption=caption)

    def by_count(self, measure: str) -> _ByRow:
        """Row → number of training queries → mean."""
        return {
            row: {count: self.means[count][row][measure] for count in self.counts}
            for row in self.rows
        }

    def tests(self, measure: str) -> dict[str, dict[str, float | None]]:
        """Row → number of training queries → p."""
        return {
            row: {count: self.p_values[count][row][measure] for count in self.counts}
            for row in self.rows
            if row != self.baseline
        }

    def _cell(self, row: str, measure: str, count: str) -> str:
        p_value = self.p_values[count].get(row, {}).get(measure)
        return f"{self.means[count][row][measure]:.4f}{'*' if starred(p_value) else ''}"

    def __str__(self) -> str:
        return self.table


def over_seeds(by_seed: list[dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Average the values of each query over the seeds.

    Args:
        by_seed: measure → qid → value, for each seed.

    Returns:
        Measure → qid → mean.
    """
    return {
        measure: {qid: fmean(values[measure][qid] for values in by_seed) for qid in queries}
        for measure, queries in by_seed[0].items()
    }
