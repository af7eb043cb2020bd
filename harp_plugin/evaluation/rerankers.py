"""Rerankers: made of models, identified by fingerprints, run over a few queries at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyterrier as pt
from tqdm.auto import tqdm

from ..collections.dataset import JudgedDataset
from ..errors import one_line
from ..models.loading import model_fingerprint
from ..ranking import HarpReranker
from .options import COSINE
from .runs import ranked

__all__ = ["fingerprints", "make_reranker", "rerank"]

_PAIRS_AT_ONCE = 1000


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
    """Cut a run, in which the results of a query stand together, between queries."""
    sizes = run.groupby("qid", sort=False).size()
    part = sizes.cumsum().sub(1) // _PAIRS_AT_ONCE
    for _, rows in run.groupby(run["qid"].map(part), sort=False):
        yield rows.reset_index(drop=True)
