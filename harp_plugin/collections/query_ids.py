"""Query ids: read from a file, or put into the order in which few-shot subsets nest."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from ..errors import HarpError
from ..sampling import stable_id

__all__ = ["few_shot_order", "read_query_ids"]


def few_shot_order(ids: Iterable[str], seed: int, purpose: str = "few-shot") -> list[str]:
    """Put query ids into a random order, from whose head fewer or more queries are taken.

    The place of an id is drawn from the seed and the id alone. So the first n ids are among the
    first n + 1, and further ids do not change the order of the others.

    Args:
        ids: of queries.
        seed: of the draw.
        purpose: what the queries are drawn for; another purpose gives another order.
    """
    return sorted(set(ids), key=lambda id: (stable_id(seed, purpose, id), id))


def read_query_ids(path: str | None, allowed: Collection[str], source: str) -> set[str]:
    """Read a file of query ids, one a line.

    Args:
        path: the file; None for all allowed ids.
        allowed: the ids that may stand in the file.
        source: what has those queries, in an error.

    Raises:
        HarpError: the file cannot be read, is empty, or lists a query that is not allowed.
    """
    if path is None:
        return set(allowed)
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise HarpError(f"cannot read query_ids {path}: {error}") from error
    ids: set[str] = set()
    for number, line in enumerate(lines, start=1):
        id = line.strip()
        if id and id not in allowed:
            raise HarpError(f"{path}, line {number}: no query {id!r} in {source}")
        ids |= {id} - {""}
    if not ids:
        raise HarpError(f"query_ids {path} is empty: list one query id a line")
    return ids
