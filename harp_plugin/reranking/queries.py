"""A TREC run, query by query."""

from __future__ import annotations

import gzip
from collections.abc import Container, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from ..errors import HarpError
from ..trec_run import run_lines

STDIN = "-"


@dataclass(frozen=True)
class Results:
    """The results of one query, best first.

    Attributes:
        qid: the query.
        docnos: as many as were asked for.
        lines: how many the run has.
    """

    qid: str
    docnos: list[str]
    lines: int


def results_by_query(
    run: str, depth: int | None, queries: Container[str], collection: str
) -> Iterator[Results]:
    """Stream a run whose lines of a query stand together; one query is in memory at once.

    Results are ordered by score as evaluation tools do; equal scores keep the order of the run.

    Args:
        run: a file, plain or ``.gz``, or ``-`` for standard input.
        depth: how many results of a query to give; None for all.
        queries: those that may stand in the run.
        collection: whose queries those are, in an error.

    Raises:
        HarpError: a line is malformed, its query is unknown or stands apart from its other lines,
            or a document stands twice under a query, or there is nothing in the run.
    """
    path = "/dev/stdin" if run == STDIN else run
    seen: set[str] = set()
    for qid, lines in groupby(run_lines(path, queries, collection), attrgetter("query")):
        if qid in seen:
            raise HarpError(f"run {run} has lines of query {qid} in two places: sort it by query")
        seen.add(qid)
        found = list(lines)
        best = sorted(found, key=attrgetter("score"), reverse=True)
        docnos = [line.document for line in best]
        if len(set(docnos)) < len(docnos):
            twice = next(docno for docno in docnos if docnos.count(docno) > 1)
            raise HarpError(f"run {run} lists document {twice} twice for query {qid}: keep one")
        yield Results(qid, docnos[:depth], len(found))
    if not seen:
        raise HarpError(f"run {run} is empty: name a run with results")


def count_lines(run: str) -> int | None:
    """How many lines a run has; None for standard input.

    Raises:
        HarpError: it cannot be read.
    """
    if run == STDIN:
        return None
    opened = gzip.open if run.endswith(".gz") else open
    try:
        with opened(Path(run), "rb") as lines:
            return sum(1 for _ in lines)
    except (OSError, EOFError) as error:
        raise HarpError(f"cannot read run {run}: {error}") from error
