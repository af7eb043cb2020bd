"""The lines of a TREC run: query, ``Q0``, document, rank, score, tag."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Container, Iterator
from pathlib import Path
from typing import NamedTuple

from .errors import HarpError


class Retrieved(NamedTuple):
    """One line of a run."""

    query: str
    document: str
    score: float


def run_lines(
    path: str | Path, queries: Container[str] | None = None, collection: str = ""
) -> Iterator[Retrieved]:
    """Stream the lines of a run, plain or ``.gz``; empty ones are passed over.

    Args:
        path: the file.
        queries: the queries that may stand in it, None for any.
        collection: whose queries those are, in an error.

    Raises:
        HarpError: the file cannot be read, a line is malformed, or its query is not among those.
    """
    opened = gzip.open if str(path).endswith(".gz") else open
    try:
        with opened(Path(path), "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    where = f"run {path}, line {number}"
                    retrieved = _retrieved(line, where)
                    if queries is not None and retrieved.query not in queries:
                        raise HarpError(
                            f"{where}: query {retrieved.query!r} is not in {collection}: name a "
                            "run of its queries"
                        )
                    yield retrieved
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise HarpError(f"cannot read run {path}: {error}") from error


def _retrieved(line: str, where: str) -> Retrieved:
    columns = line.split()
    if len(columns) != 6:
        raise HarpError(f"{where}: {len(columns)} columns; a TREC run has 6")
    try:
        score = float(columns[4])
    except ValueError:
        score = float("nan")
    if score != score:
        raise HarpError(f"{where}: score {columns[4]!r} is no number")
    return Retrieved(columns[0], columns[2], score)
