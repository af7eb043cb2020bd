"""TREC runs as data frames: read from disk, written whole, and reused when nothing has changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ..collections.run import Result, Run, run_lines, run_text
from ..work.provenance import MadeFrom, OverwriteRules
from ..work.with_record import FileWithRecord

__all__ = ["COLUMNS", "frame_text", "ranked", "read_run", "stored_run"]

COLUMNS = ["qid", "docno", "score", "rank"]


def read_run(path: Path) -> pd.DataFrame:
    """Read a TREC run, plain or ``.gz``: columns qid, docno, score, rank (from 0).

    Results are ordered by score as evaluation tools do; equal scores keep the order of the file.

    Raises:
        HarpError: a line is malformed, a document stands twice for a query, or there are no lines.
    """
    run = Run(run_lines(path), f"run {path}")
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for query in run:
        scores = run.scores(query)
        columns["qid"] += [query] * len(scores)
        columns["docno"] += scores.keys()
        columns["score"] += scores.values()
        columns["rank"] += range(len(scores))
    return pd.DataFrame(columns)


def ranked(run: pd.DataFrame) -> pd.DataFrame:
    """Order results by score within each query, and add ranks from 0.

    Queries keep the order of their first rows, and equal scores the order of their rows.
    """
    place = run["qid"].map({qid: place for place, qid in enumerate(run["qid"].unique())})
    run = run.assign(place=place).sort_values(
        ["place", "score"], ascending=[True, False], kind="stable", ignore_index=True
    )
    return run.assign(rank=run.groupby("place").cumcount())[COLUMNS]


def frame_text(run: pd.DataFrame, tag: str) -> str:
    """Write a run with columns qid, docno, rank and score as the lines of a TREC run."""
    columns = (run[name].tolist() for name in ("qid", "docno", "rank", "score"))
    return run_text(map(Result._make, zip(*columns, strict=True)), tag)


def stored_run(
    path: Path,
    settings: Mapping[str, Any],
    make: Callable[[], pd.DataFrame],
    *,
    versions: Mapping[str, str] | None = None,
    rules: OverwriteRules | None = None,
) -> pd.DataFrame:
    """Read the run at ``path`` if it was made from these settings and is whole, else make it.

    Args:
        path: of the run; its note lies beside it in ``<path>.json``.
        settings: what the run is made from.
        make: computes the run.
        versions: of the packages that make it.
        rules: which files may be replaced.

    Raises:
        HarpError: the file was not written by harp, or may not be replaced.
    """
    made_from = MadeFrom(settings, versions or {})
    file = FileWithRecord(path, made_from, rules or OverwriteRules())
    if not file.is_finished():
        text = frame_text(make(), tag=path.stem)
        with file.writing() as temporary:
            temporary.write_text(text, encoding="utf-8")
    return read_run(path)
