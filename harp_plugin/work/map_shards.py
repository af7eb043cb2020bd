"""A function from one shard to one shard, over processes here or over the executors of Spark."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from .shards import shard_map
from .sql.options import EngineOptions

__all__ = ["map_shards"]

S = TypeVar("S")
R = TypeVar("R")


def map_shards(
    fn: Callable[[S], R],
    shards: Iterable[S],
    engine: EngineOptions | None = None,
    workers: int = 1,
    begin: Callable[..., None] | None = None,
    *arguments: Any,
) -> Iterator[R]:
    """Apply ``fn`` to every shard, in order; the bytes that it writes are the same for any engine.

    Args:
        fn: a picklable function.
        shards: the shards, read lazily.
        engine: Spark, or processes of this machine (by default).
        workers: processes, or for Spark the least number of shards that are computed at once.
        begin: called once in every process of this machine, not by Spark.
        arguments: of ``begin``.

    Raises:
        HarpError: a worker was killed, or Spark fails.
    """
    if engine is None or not engine.is_spark:
        yield from shard_map(fn, shards, workers, begin, *arguments)
        return
    shards = iter(shards)
    first = list(itertools.islice(shards, 1))
    if not first:
        return
    from .sql.spark import spark_map

    yield from spark_map(fn, itertools.chain(first, shards), engine, workers)
