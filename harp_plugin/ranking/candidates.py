"""What is fused: the options, and the documents of each query with normalized scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from ..errors import HarpError
from ..options import checked
from .frames import check_frame, first_stage_order

__all__ = [
    "CANDIDATES",
    "NORMALISATIONS",
    "RRF_K",
    "SCALES",
    "Candidates",
    "check_fusion",
    "check_weights",
    "read_candidates",
]

CANDIDATES = ("first", "union")
"""Which documents are ranked: those of the first system, or of any."""
NORMALISATIONS = ("zscore", "minmax", "rrf")
"""How the scores of a query are brought to one scale."""
RRF_K = 60
"""The constant of reciprocal rank fusion, as Cormack et al. (SIGIR 2009) set it."""


@dataclass(frozen=True)
class Candidates:
    """The documents that a fusion ranks.

    The documents of a query stand together, those of the first system before others, each in the
    order of its system.

    Attributes:
        qids: (queries,) ids of the queries.
        query_of: (documents,) the number of each document's query.
        docnos: (documents,) ids of the documents.
        scores: (systems, documents) normalized scores.
        rows: (documents,) the row of each document in the runs, one behind the other.
    """

    qids: np.ndarray
    query_of: np.ndarray
    docnos: np.ndarray
    scores: np.ndarray
    rows: np.ndarray

    @property
    def starts(self) -> np.ndarray:
        """(queries,) the index of each query's first document."""
        return np.flatnonzero(np.diff(self.query_of, prepend=-1))


def read_candidates(
    runs: Mapping[str, pd.DataFrame], *, normalization: str, candidates: str
) -> Candidates:
    """Read the candidates of each query from runs, and normalize their scores.

    A candidate that a system does not return gets the least score that this system gives to any
    document of the query; with ``rrf`` it gets 0. A system that returns nothing for a query gives 0
    to each of its candidates.

    Args:
        runs: columns ``qid``, ``docno`` and ``score``, by the names of the systems. Equal scores
            have the order of the column ``rank`` where there is one, else of their rows.
        normalization: ``zscore``, ``minmax``, or ``rrf`` for 1 / (60 + rank) with ranks from 1.
        candidates: ``first`` for the documents of the first system, ``union`` for those of all.

    Raises:
        HarpError: a run lacks a column, has a score that is not a finite number, or lists a
            document twice for a query; the message names the system, the qid and the docno.
    """
    for name, run in runs.items():
        _check(name, run)
    every = _joined(runs)
    check_frame(every)
    query_of, qids = pd.factorize(every["qid"])
    document_of, docnos = pd.factorize(every["docno"])
    pair_of, _ = pd.factorize(query_of * np.int64(len(docnos)) + document_of)
    _, first_lines = np.unique(pair_of, return_index=True)
    system_of, stated = every["system"].to_numpy(), every["score"].to_numpy(dtype=np.float64)
    if normalization == "rrf":
        stated = 1 / (
            RRF_K + 1 + every.groupby(["system", "qid"], sort=False).cumcount().to_numpy()
        )
        missing = np.zeros((len(runs), len(qids)))
    else:
        missing = np.full((len(runs), len(qids)), np.inf)
        np.minimum.at(missing, (system_of, query_of), stated)
        missing[~np.isfinite(missing)] = 0
    scores = missing[:, query_of[first_lines]]
    scores[system_of, pair_of] = stated

    lines = first_lines if candidates == "union" else first_lines[system_of[first_lines] == 0]
    lines = lines[np.argsort(query_of[lines], kind="stable")]
    kept, query_of_candidate = np.unique(query_of[lines], return_inverse=True)
    result = Candidates(
        np.asarray(qids)[kept],
        query_of_candidate,
        np.asarray(docnos)[document_of[lines]],
        scores[:, pair_of[lines]],
        every["row"].to_numpy()[lines],
    )
    if normalization == "rrf" or not len(lines):
        return result
    return replace(result, scores=SCALES[normalization](result.scores, result.starts))


def _check(name: str, run: pd.DataFrame) -> None:
    """Check the columns and the scores of a run, and that no query has a document twice."""
    missing = [column for column in ("qid", "docno", "score") if column not in run.columns]
    if missing:
        raise HarpError(f"system {name!r} gives no column {missing[0]}: name one that ranks")
    numbers = run["score"]
    wrong = ~np.isfinite(numbers) if pd.api.types.is_numeric_dtype(numbers) else np.zeros(0)
    if wrong.any():
        line = run.iloc[int(wrong.argmax())]
        raise HarpError(
            f"system {name!r} gives document {line['docno']} of qid {line['qid']} the score "
            f"{line['score']}: scores must be finite numbers"
        )
    check_frame(run)
    twice = run.duplicated(["qid", "docno"]).to_numpy()
    if twice.any():
        line = run.iloc[int(twice.argmax())]
        raise HarpError(
            f"system {name!r} lists document {line['docno']} twice for qid {line['qid']}: keep one"
        )


def _joined(runs: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Put the runs one behind the other, the results of each query best first, with their rows."""
    parts, start = [], 0
    for number, run in enumerate(runs.values()):
        order = first_stage_order(run)
        order = order[np.argsort(pd.factorize(run["qid"])[0][order], kind="stable")]
        part = run[["qid", "docno", "score"]].iloc[order]
        parts.append(part.assign(system=number, row=start + order))
        start += len(run)
    return pd.concat(parts, ignore_index=True)


def check_fusion(systems: Mapping[str, Any], normalization: str, candidates: str) -> None:
    """Check the systems and the options of a fusion.

    Raises:
        HarpError: there are fewer than two systems, or an option has an unknown value.
    """
    if len(systems) < 2:
        raise HarpError(f"{len(systems)} systems cannot be fused: name at least two")
    checked("normalization", Literal[NORMALISATIONS], normalization)
    checked("candidates", Literal[CANDIDATES], candidates)


def check_weights(names: Sequence[str], weights: Mapping[str, float] | None) -> dict[str, float]:
    """Check the weights of systems, and put them into the order of the systems.

    Raises:
        HarpError: a system has no weight, a weight belongs to no system, is negative or no finite
            number, or all weights are 0.
    """
    if weights is None:
        return dict.fromkeys(names, 1.0)
    if unknown := [name for name in weights if name not in names]:
        raise HarpError(f"there is no system {unknown[0]!r} for its weight: {', '.join(names)} are")
    if missing := [name for name in names if name not in weights]:
        raise HarpError(f"system {missing[0]!r} has no weight: give each one, 0 to leave it out")
    values = {name: float(weights[name]) for name in names}
    if not all(math.isfinite(value) and value >= 0 for value in values.values()):
        raise HarpError(f"weights are {values}: each must be a finite number and not negative")
    if not any(values.values()):
        raise HarpError("all weights are 0: give one system a weight")
    return values


def min_max(scores: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Scale the scores of each query to 0 … 1; scores that are all equal become 0.

    Args:
        scores: (systems, documents), finite; the documents of a query stand together.
        starts: (queries,) the index of each query's first document.

    Returns:
        (systems, documents) float64.
    """
    halves = scores / 2  # whose differences are finite
    query_of = _query_of(scores, starts)
    least = np.minimum.reduceat(halves, starts, axis=1)
    spread = np.maximum.reduceat(halves, starts, axis=1) - least
    return (halves - least[:, query_of]) / np.where(spread > 0, spread, 1)[:, query_of]


def z_scores(scores: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Give the scores of each query mean 0 and standard deviation 1, as `min_max` scales them.

    Scores that are all equal become 0.
    """
    scaled = min_max(scores, starts)
    query_of = _query_of(scores, starts)
    sizes = np.bincount(query_of)
    centerd = scaled - (np.add.reduceat(scaled, starts, axis=1) / sizes)[:, query_of]
    deviations = np.sqrt(np.add.reduceat(centerd**2, starts, axis=1) / sizes)
    differ = np.maximum.reduceat(scaled, starts, axis=1) > 0
    factors = np.where(differ, 1 / np.where(differ, deviations, 1), 0)
    return centerd * factors[:, query_of]


def _query_of(scores: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """(documents,) the number of each document's query."""
    return np.repeat(np.arange(len(starts)), np.diff(starts, append=scores.shape[1]))


SCALES = {"minmax": min_max, "zscore": z_scores}
"""The functions that scale scores, by the names that options use."""
