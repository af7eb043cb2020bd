"""The page, which needs no other file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ...collections.dataset import JudgedDataset
from ...html_page import render_page
from ..results import Results, paired_difference, star_note, starred
from .queries import changed_queries

__all__ = ["render", "rows_of"]


def render(
    results: Results,
    runs: dict[str, pd.DataFrame],
    collection: JudgedDataset,
    importances: Mapping[str, pd.Series],
) -> str:
    """Write the page: it escapes every text of the collection, and may load nothing.

    Bars show the first measure. Queries won and lost are those of the row with the highest mean,
    the baseline left out.

    Args:
        results: of the evaluation.
        runs: row → run.
        collection: that was searched.
        importances: row of a learned ranker → share of each feature.
    """
    rows = rows_of(results)
    measures = list(rows[0]["means"])
    measure = measures[0]
    most = max(row["means"][measure] for row in rows)
    others = {row: means[measure] for row, means in results.means.items()}
    del others[results.baseline]
    system = max(others, key=others.__getitem__, default=None)
    won, lost = changed_queries(results, runs, collection, system, measure) if system else ([], [])
    return render_page(
        __package__,
        results=results,
        rows=rows,
        measures=measures,
        measure=measure,
        system=system,
        star=star_note(results.baseline, results.correction),
        highest=max(
            row["means"][measure]
            + (min(most, row["differences"][measure]["half_width"]) if row["differences"] else 0)
            for row in rows
        )
        or 1,
        importances=importances,
        groups=[("won", "Queries won", won), ("lost", "Queries lost", lost)],
        notes=results.every_note,
    )


def rows_of(results: Results) -> list[dict[str, Any]]:
    """Return the rows of the results, in their order.

    Returns:
        Of each row ``name``; ``means`` (measure → mean over queries); and ``differences`` from the
        baseline over the same queries (measure → ``mean``, ``half_width`` of the interval of 95 %
        confidence of `paired_difference`, ``p_value`` after the correction, ``is_significant``).
        The baseline has None for them. Where there is nothing to test, ``half_width`` is 0 and
        ``p_value`` None.
    """
    return [
        {
            "name": name,
            "means": means,
            "differences": None if name == results.baseline else _differences(results, name),
        }
        for name, means in results.means.items()
    ]


def _differences(results: Results, name: str) -> dict[str, dict[str, Any]]:
    baseline, differences = results.per_query[results.baseline], {}
    for measure, by_query in results.per_query[name].items():
        others = baseline[measure]
        _, half_width = paired_difference(by_query, others, results.groups)
        p_value = results.p_values[name][measure]
        differences[measure] = {
            "mean": float(np.mean([value - others[qid] for qid, value in by_query.items()])),
            "half_width": half_width,
            "p_value": p_value,
            "is_significant": starred(p_value),
        }
    return differences
