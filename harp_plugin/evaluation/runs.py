"""TREC runs on disk: read with care, written whole, reused when nothing has changed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import HarpError
from ..trec_run import run_lines

COLUMNS = ["qid", "docno", "score", "rank"]


def write_whole(path: Path, text: str) -> None:
    """Write a file under a temporary name and rename it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def read_run(path: Path) -> pd.DataFrame:
    """Read a TREC run, plain or ``.gz``: columns qid, docno, score, rank (from 0).

    Results are ordered by score as evaluation tools do; equal scores keep the order of the file.

    Raises:
        HarpError: a line is malformed, a document stands twice under a query, or nothing is there.
    """
    run = pd.DataFrame(run_lines(path), columns=COLUMNS[:3])
    if not len(run):
        raise HarpError(f"run {path} is empty: name a run with results")
    twice = run[run.duplicated(["qid", "docno"])]
    if len(twice):
        qid, docno = twice.iloc[0][["qid", "docno"]]
        raise HarpError(f"run {path} lists document {docno} twice for query {qid}: keep one")
    return ranked(run)


def ranked(run: pd.DataFrame) -> pd.DataFrame:
    """Order by score within each query, in the order of queries' first lines, and add ranks."""
    place = run["qid"].map({qid: place for place, qid in enumerate(run["qid"].unique())})
    run = run.assign(place=place).sort_values(
        ["place", "score"], ascending=[True, False], kind="stable", ignore_index=True
    )
    return run.assign(rank=run.groupby("place").cumcount())[COLUMNS]


def run_text(run: pd.DataFrame, tag: str) -> str:
    """The lines of a TREC run; scores are written so that they read back as they were."""
    rows = zip(*(run[column].tolist() for column in COLUMNS), strict=True)
    return "".join(f"{qid} Q0 {doc} {rank} {score!r} {tag}\n" for qid, doc, score, rank in rows)


def stored_run(
    path: Path, settings: dict[str, Any], make: Callable[[], pd.DataFrame]
) -> pd.DataFrame:
    """Read the run at ``path`` if it was made with these settings and is whole, else make it.

    The settings and the run's checksum lie beside it in ``<path>.json``, written last.
    """
    note = path.with_name(f"{path.name}.json")
    settings = json.loads(json.dumps(settings))
    if path.is_file() and note.is_file():
        known = _json(note)
        if known.get("settings") == settings and known.get("sha256") == _sha256(path):
            return read_run(path)
    write_whole(path, run_text(make(), tag=path.stem))
    write_whole(note, json.dumps({"settings": settings, "sha256": _sha256(path)}, indent=1) + "\n")
    return read_run(path)


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
