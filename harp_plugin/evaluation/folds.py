"""Queries in folds: each is held out once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..collections.judged_queries import read_query_ids
from ..errors import HarpError
from ..sampling import generator

__all__ = ["Fold", "draw_parts", "folds_of", "read_parts"]


@dataclass(frozen=True)
class Fold:
    """The ids of the queries that a fold is trained, validated and tested on.

    Attributes:
        number: from 1.
        train: of the queries that may be learnt from.
        validation: of the queries by which options are chosen; none without a grid.
        test: of the held-out queries.
    """

    number: int
    train: tuple[str, ...]
    validation: tuple[str, ...]
    test: tuple[str, ...]

    @property
    def train_file(self) -> str:
        """Name of the file of the training queries' ids."""
        return f"fold-{self.number}.train.txt"


def draw_parts(ids: Sequence[str], count: int, seed: int) -> list[tuple[str, ...]]:
    """Deal the ids, in an order drawn by the seed, to parts whose sizes differ by one at most.

    Raises:
        HarpError: there are fewer ids than parts.
    """
    if count > len(ids):
        raise HarpError(f"{count} folds of {len(ids)} queries: ask for at most {len(ids)}")
    in_order = sorted(ids)
    order = [in_order[index] for index in generator(seed, "folds").permutation(len(ids))]
    return [tuple(sorted(order[part::count])) for part in range(count)]


def read_parts(paths: Sequence[str], ids: Sequence[str], source: str) -> list[tuple[str, ...]]:
    """Read the parts that files list.

    Raises:
        HarpError: a file cannot be read or is empty, a query is in two files or in none, or a query
            is not in the source.
    """
    parts = [read_query_ids(path, set(ids), source) for path in paths]
    owner: dict[str, str] = {}
    for path, part in zip(paths, parts, strict=True):
        for query in sorted(part):
            if query in owner:
                raise HarpError(f"query {query} is in {owner[query]} and in {path}: keep one")
            owner[query] = path
    if missing := sorted(set(ids) - owner.keys()):
        raise HarpError(
            f"{len(missing)} judged queries of {source} are in no fold file, such as {missing[0]}:"
            " put each in one"
        )
    return [tuple(sorted(part)) for part in parts]


def folds_of(parts: Sequence[tuple[str, ...]], *, validate: bool) -> list[Fold]:
    """Make a fold of each part, which is held out once.

    Args:
        parts: ids of queries.
        validate: whether the part after the held-out one is for validation.
    """
    folds = []
    for index, test in enumerate(parts):
        validation = parts[(index + 1) % len(parts)] if validate else ()
        not_learnt = {*test, *validation}
        train = sorted(query for part in parts for query in part if query not in not_learnt)
        folds.append(Fold(index + 1, tuple(train), validation, test))
    return folds
