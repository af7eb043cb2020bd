"""A TREC run, query by query."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from ...collections.trec_run import run_lines
from ...errors import HarpError

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
            raise HarpError(
                f"run {run} has lines of query {qid:.80} in two places: sort it by query"
            )
        seen.add(qid)
        scores: dict[str, float] = {}
        for _, docno, score in lines:
            if docno in scores:
                raise HarpError(
                    f"run {run} lists document {docno:.80} twice for query {qid:.80}: keep one"
                )
            scores[docno] = score
        best = sorted(scores, key=scores.__getitem__, reverse=True)
        yield Results(qid, best[:depth], len(scores))
    if not seen:
        raise HarpError(f"run {run} is empty: name a run with results")
