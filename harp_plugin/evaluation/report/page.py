"""The page, which needs no other file."""

from __future__ import annotations

import pandas as pd

from ...collections.dataset import JudgedDataset
from ...html_page import render_page
from ..results import Results, star_note
from .queries import changed_queries
from .rows import rows_of

__all__ = ["render"]


def render(
    results: Results,
    runs: dict[str, pd.DataFrame],
    collection: JudgedDataset,
    *,
    system: str | None = None,
    measure: str | None = None,
    notes: list[str] | None = None,
) -> str:
    """Write the page: it escapes every text of the collection, and may load nothing.

    Args:
        results: of the evaluation.
        runs: row → run.
        collection: that was searched.
        system: the row whose queries won and lost are shown; by default the one with the highest
            mean, the baseline left out.
        measure: the one that the bars show; by default the first of the results.
        notes: paragraphs that stand below the title.
    """
    rows = rows_of(results)
    measures = list(rows[0]["means"])
    measure = measure or measures[0]
    others = [row for row in rows if row["name"] != results.baseline]
    if system is None and others:
        system = max(others, key=lambda row: row["means"][measure])["name"]
    won, lost = changed_queries(results, runs, collection, system, measure) if system else ([], [])
    return render_page(
        __package__,
        "page.html",
        results=results,
        rows=rows,
        measures=measures,
        measure=measure,
        system=system,
        star=star_note(results.baseline, results.correction),
        highest=max(
            row["means"][measure]
            + (row["differences"][measure]["half_width"] if row["differences"] else 0)
            for row in rows
        )
        or 1,
        groups=[("won", "Queries won", won), ("lost", "Queries lost", lost)],
        notes=[*(notes or []), *results.notes],
    )
