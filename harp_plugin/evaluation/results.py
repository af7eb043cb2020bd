"""Measures of an experiment: means, paired tests, a table."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from textwrap import fill
from typing import Any, TypeVar

import ir_measures
import numpy as np
import pandas as pd
from scipy.stats import t as student
from statsmodels.stats.multitest import multipletests

from ..collections.judged_queries import check_judgments
from ..ranking.ranking_measures import parse_measure

__all__ = [
    "Results",
    "averages",
    "corrected",
    "groups_of_queries",
    "measure_runs",
    "paired_difference",
    "paired_tests",
    "parse_measures",
    "star_note",
    "starred",
    "text_blocks",
]

_COLLECTED = re.compile(r"([a-z]+)-[0-9a-f]{16}")
"""The id of a query that `harp collect` made, which begins with its kind."""
_WIDTH = 80
_SIGNIFICANT = 0.05
_ROUNDING = 1e-9
"""A standard error that is this small beside the differences is one of rounding."""
_Row = TypeVar("_Row", bound=Hashable)


@dataclass(frozen=True)
class Results:
    """The measures of an experiment and the tests between its rows.

    Attributes:
        title: dataset, number of queries, depth.
        path: the results.json that was written.
        baseline: the row that paired tests compare with.
        per_query: row → measure → qid → value.
        means: row → measure → mean over queries.
        p_values: row → measure → p of the two-sided paired t-test against the baseline; None where
            there is nothing to test (see `paired_difference`).
        correction: of the p-values for the number of tests, ``none`` or ``holm``.
        notes: lines below the table.
        groups: qid → group of queries, of `groups_of_queries`; empty where each is its own.
    """

    title: str
    path: Path
    baseline: str
    per_query: dict[str, dict[str, dict[str, float]]]
    means: dict[str, dict[str, float]]
    p_values: dict[str, dict[str, float | None]]
    correction: str = "none"
    notes: tuple[str, ...] = ()
    groups: Mapping[str, Hashable] = field(default_factory=dict)

    @property
    def table(self) -> str:
        """Means as text of at most 80 columns; a star marks p < 0.05 against the baseline."""
        blocks = [self.title, *text_blocks(self.means, self.p_values)]
        if self.by_kind:
            measure = next(iter(next(iter(self.means.values()))))
            blocks += [f"{measure} by kind of query", *text_blocks(self.by_kind, {})]
        if any(starred(p) for by_measure in self.p_values.values() for p in by_measure.values()):
            blocks.append(star_note(self.baseline, self.correction))
        blocks += [fill(note, _WIDTH) for note in self.every_note]
        return "\n\n".join(blocks)

    @property
    def every_note(self) -> tuple[str, ...]:
        """The notes, and how many groups of queries were tested where these are fewer."""
        qids = next(iter(self.per_query.get(self.baseline, {}).values()), {})
        groups = {self.groups.get(qid, qid) for qid in qids}
        if len(groups) == len(qids):
            return self.notes
        return (
            *self.notes,
            f"the tests take queries with the same relevant documents as one group: {len(qids)} "
            f"queries, {len(groups)} groups",
        )

    @property
    def by_kind(self) -> dict[str, dict[str, float]]:
        """The first measure by the kind of query: row → kind with its number of queries → mean.

        It is empty unless the ids of the queries are those of `harp collect`, of several kinds.
        """
        by_row = {row: next(iter(values.values())) for row, values in self.per_query.items()}
        qids: dict[str, list[str]] = {}
        for qid in next(iter(by_row.values()), ()):
            found = _COLLECTED.fullmatch(qid)
            qids.setdefault(found[1] if found else "", []).append(qid)
        if "" in qids or len(qids) < 2:
            return {}
        kinds = {f"{kind} ({len(of)})": of for kind, of in sorted(qids.items())}
        return {
            row: {kind: fmean(values[qid] for qid in of) for kind, of in kinds.items()}
            for row, values in by_row.items()
        }

    def __str__(self) -> str:
        return self.table


def text_blocks(
    values: Mapping[str, Mapping[str, float]], p_values: Mapping[str, Mapping[str, float | None]]
) -> Iterator[str]:
    """Write row → column → value as blocks of text, each at most 80 characters wide."""
    columns = list(next(iter(values.values())))
    wide = max(10, *(len(column) + 3 for column in columns))
    names = min(max(map(len, values)), _WIDTH - wide)
    columns_at_once = max(1, (_WIDTH - names) // wide)
    for start in range(0, len(columns), columns_at_once):
        shown = columns[start : start + columns_at_once]
        lines = [" " * names + "".join(f"{column:>{wide - 1}} " for column in shown)]
        for row, by_column in values.items():
            stars = ["*" if starred(p_values.get(row, {}).get(c)) else " " for c in shown]
            cells = (
                f"{by_column[c]:>{wide - 1}.4f}{star}" for c, star in zip(shown, stars, strict=True)
            )
            name = row if len(row) <= names else f"{row[: names - 1]}…"
            lines.append(f"{name:<{names}}" + "".join(cells))
        yield "\n".join(line.rstrip() for line in lines)


def starred(p_value: float | None) -> bool:
    """Return whether a p-value is marked by a star, because it is significant."""
    return p_value is not None and p_value < _SIGNIFICANT


def star_note(baseline: str, correction: str) -> str:
    """Explain the star."""
    corrected = {"none": "", "holm": ", Holm's correction"}[correction]
    return f"* p < {_SIGNIFICANT} against {baseline} (paired t-test{corrected})"


def parse_measures(names: list[str]) -> list[Any]:
    """Find the measures of ir_measures by their names.

    Raises:
        HarpError: a measure is unknown, or no installed package computes it.
    """
    return [parse_measure(name) for name in names]


def measure_runs(
    runs: dict[str, pd.DataFrame], topics: pd.DataFrame, qrels: pd.DataFrame, measures: list[Any]
) -> dict[str, dict[str, dict[str, float]]]:
    """Measure each query of each run: row → measure → qid → value.

    A query without results counts as 0. Measures of all packages see ranks, where equal scores
    keep the order of their rows: ties are broken alike.

    Raises:
        HarpError: a document is judged twice for a query, differently.
    """
    check_judgments(qrels)
    names = {"qid": "query_id", "docno": "doc_id", "label": "relevance"}
    qids = topics["qid"].tolist()
    numbers = {qid: str(number) for number, qid in enumerate(qids)}  # gdeval reads no other ids

    def numbered(frame: pd.DataFrame) -> pd.DataFrame:
        of_topics = frame.assign(qid=frame["qid"].map(numbers)).dropna(subset="qid")
        return of_topics.rename(columns=names)

    evaluator = ir_measures.evaluator(measures, numbered(qrels))
    per_query = {}
    for row, run in runs.items():
        values = {str(measure): dict.fromkeys(qids, 0.0) for measure in measures}
        in_order = run.sort_values("score", ascending=False, kind="stable")
        in_order = in_order.assign(score=-in_order.groupby("qid").cumcount().astype(float))
        for number, measure, value in evaluator.iter_calc(numbered(in_order)):
            values[str(measure)][qids[int(number)]] = float(value)
        per_query[row] = values
    return per_query


def averages(per_query: dict[str, dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Average measures over queries: row → measure → mean."""
    return {
        row: {measure: fmean(values.values()) for measure, values in by_measure.items()}
        for row, by_measure in per_query.items()
    }


def groups_of_queries(qrels: pd.DataFrame) -> dict[str, int]:
    """Group the queries with the same set of relevant documents: qid → number of its group.

    Such queries are not independent observations: a system that finds a page for one of its titles
    finds it for the others too.
    """
    relevant: dict[str, set[str]] = {}
    of_relevant = qrels[qrels["label"] > 0]
    for qid, docno in zip(of_relevant["qid"], of_relevant["docno"], strict=True):
        relevant.setdefault(qid, set()).add(docno)
    numbers: dict[frozenset[str], int] = {}
    return {qid: numbers.setdefault(frozenset(of), len(numbers)) for qid, of in relevant.items()}


def paired_tests(
    per_query: dict[str, dict[str, dict[str, float]]],
    baseline: str,
    groups: Mapping[str, Hashable] | None = None,
) -> dict[str, dict[str, float | None]]:
    """Test each other row against the baseline: row → measure → p of the paired t-test.

    Args:
        per_query: row → measure → qid → value.
        baseline: the row to compare with.
        groups: qid → group of queries that are not independent; see `paired_difference`.
    """
    return {
        row: {
            measure: paired_difference(values, per_query[baseline][measure], groups or {})[0]
            for measure, values in by_measure.items()
        }
        for row, by_measure in per_query.items()
        if row != baseline
    }


def paired_difference(
    values: Mapping[str, float], baseline: Mapping[str, float], groups: Mapping[str, Hashable]
) -> tuple[float | None, float]:
    """Return p of the two-sided paired t-test, and half the width of the interval of 95 %.

    The standard error is robust to groups of queries that are not independent (Liang and Zeger,
    "Longitudinal data analysis using generalized linear models", 1986). Large groups tell less than
    as many small ones, so the degrees of freedom are those of an effective number of groups, (sum
    of n)² / sum of n² for n queries each, less one (as in Carter, Schnepel and Steigerwald,
    "Asymptotic behavior of a t-test robust to cluster heterogeneity", 2017). With groups of equal
    size, the test is Student's on the means of the groups.

    Args:
        values: qid → value.
        baseline: the same of the row to compare with.
        groups: qid → group; a query that is missing is a group of its own.

    Returns:
        p and the half width; None and 0 where there is nothing to test: no difference, none that
        varies between groups, or one group.
    """
    differences = np.array([value - baseline[qid] for qid, value in values.items()])
    numbers, names = pd.factorize(pd.Series([groups.get(qid, qid) for qid in values], dtype=object))
    if len(names) < 2:
        return None, 0.0
    count, mean = len(differences), float(differences.mean())
    deviations = np.bincount(numbers, differences - mean)
    effective = count**2 / float((np.bincount(numbers) ** 2).sum())
    variance = effective / (effective - 1) * float((deviations**2).sum())
    error = math.sqrt(variance) / count
    if not error > _ROUNDING * float(np.abs(differences).max()):
        return None, 0.0
    p_value = 2 * float(student.sf(abs(mean) / error, effective - 1))
    return p_value, error * float(student.ppf(0.975, effective - 1))


def corrected(
    p_values: dict[_Row, dict[str, float | None]], correction: str
) -> dict[_Row, dict[str, float | None]]:
    """Correct each measure's p-values for their number: row → measure → p.

    Args:
        p_values: row → measure → p.
        correction: ``none``, or ``holm`` for Holm's step-down method.
    """
    if correction == "none":
        return p_values
    result = {row: dict(by_measure) for row, by_measure in p_values.items()}
    for measure in {measure: None for by_measure in p_values.values() for measure in by_measure}:
        tests = {row: p for row in result if (p := p_values[row].get(measure)) is not None}
        if tests:
            _, ps, *_ = multipletests(list(tests.values()), method=correction)
            for row, p in zip(tests, ps, strict=True):
                result[row][measure] = float(p)
    return result
