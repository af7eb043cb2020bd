"""Runs as data frames: read from disk, made whole, reused where nothing has changed, reranked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyterrier as pt
from tqdm.auto import tqdm

from ..collections.dataset import JudgedDataset
from ..collections.run import Run, run_lines
from ..errors import HarpError, one_line
from ..models.loading import model_fingerprint
from ..ranking import HarpReranker
from ..work.artifact import Artifact, OverwriteRules, Provenance
from .options import COSINE

__all__ = [
    "COLUMNS",
    "fingerprints",
    "frame_text",
    "make_reranker",
    "ranked",
    "read_run",
    "rerank",
    "stored_run",
]

COLUMNS = ["qid", "docno", "score", "rank"]
_PAIRS_AT_ONCE = 1000


def read_run(path: Path) -> pd.DataFrame:
    """Read a TREC run, plain or ``.gz``: columns qid, docno, score, rank (from 0).

    Results are ordered by score as evaluation tools do; equal scores keep the order of the file.

    Raises:
        HarpError: a line is malformed, a document is listed twice for a query, or there are no
            lines.
    """
    run = Run(run_lines(path), f"run {path}")
    rows = [
        (query, document, score, rank)
        for query in run
        for rank, (document, score) in enumerate(run.scores(query).items())
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def ranked(run: pd.DataFrame) -> pd.DataFrame:
    """Order results by score within each query, and add ranks from 0.

    Queries keep the order of their first rows, and equal scores the order of their rows.
    """
    number = run["qid"].map({qid: number for number, qid in enumerate(run["qid"].unique())})
    run = run.assign(number=number).sort_values(
        ["number", "score"], ascending=[True, False], kind="stable", ignore_index=True
    )
    return run.assign(rank=run.groupby("number").cumcount())[COLUMNS]


def frame_text(run: pd.DataFrame, tag: str) -> str:
    """Write the lines of a TREC run; scores are written so that they read back as they were.

    Args:
        run: columns qid, docno, score and rank.
        tag: the last column.
    """
    rows = zip(*(run[name].tolist() for name in COLUMNS), strict=True)
    return "".join(f"{qid} Q0 {docno} {rank} {score!r} {tag}\n" for qid, docno, score, rank in rows)


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
        path: of the run; its record is next to it in ``<path>.json``.
        settings: what the run is made from.
        make: computes the run.
        versions: of the packages that make it.
        rules: which files may be replaced.

    Raises:
        HarpError: the file was not written by harp or may not be replaced, or what is made is no
            run; then nothing is written.
    """
    provenance, rules = Provenance(settings, versions or {}), rules or OverwriteRules()
    file = Artifact(path, "run", provenance, rules, is_file=True)
    if not file.is_finished():
        text = frame_text(make(), tag=path.stem)
        with file.writing() as temporary:
            temporary.write_text(text, encoding="utf-8")
            try:
                return read_run(temporary)
            except HarpError as error:
                reason = str(error).replace(str(temporary), path.name)
                raise HarpError(
                    f"{path.stem} gives results that are no run ({reason}): correct what ranks"
                ) from error
    return read_run(path)


def make_reranker(model: str | list[str], **arguments: Any) -> pt.Transformer:
    """Make the reranker of a model, or the ensemble of several."""
    if isinstance(model, list):
        return HarpReranker.ensemble(model, **arguments)
    return HarpReranker(model, **arguments)


def fingerprints(model: str | list[str]) -> str | list[str]:
    """Compute the fingerprint of a model or an encoder, or of each model in a list."""
    if isinstance(model, list):
        return list(map(model_fingerprint, model))
    return model_fingerprint(model.removeprefix(COSINE))


def rerank(
    first: pd.DataFrame, collection: JudgedDataset, reranker: pt.Transformer, name: str, quiet: bool
) -> pd.DataFrame:
    """Rerank a run a few queries at a time, so that few texts are in memory at once."""
    parts = []
    with tqdm(total=len(first), desc=one_line(name), unit="pair", disable=quiet) as bar:
        for part in _few_queries(first):
            parts.append(ranked(reranker.transform(collection.with_texts(part))))
            bar.update(len(part))
    return pd.concat(parts, ignore_index=True)


def _few_queries(run: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Cut a run, in which the results of a query follow each other, between queries."""
    sizes = run.groupby("qid", sort=False).size()
    part = sizes.cumsum().sub(1) // _PAIRS_AT_ONCE
    for _, rows in run.groupby(run["qid"].map(part), sort=False):
        yield rows.reset_index(drop=True)
