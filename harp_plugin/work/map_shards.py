"""A function from one shard to one shard, over processes here or over the executors of Spark."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from .processes import in_processes
from .sql.engine import EngineOptions

__all__ = ["map_shards"]

S = TypeVar("S")
R = TypeVar("R")

_KILLED = (
    "a worker process was killed, most often for lack of memory: run again with fewer --workers "
    "(finished shards are kept)"
)


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
        shards: the shards, read lazily: at most two are held at once for each worker.
        engine: Spark, or processes of this machine (by default).
        workers: processes (1 runs in this one), or for Spark the least number of shards at once.
        begin: called once in every other process of this machine, not by Spark.
        arguments: of ``begin``.

    Raises:
        HarpError: a worker was killed, or Spark fails.
    """
    if engine is not None and engine.is_spark:
        yield from _over_spark(fn, iter(shards), engine, workers)
    elif workers <= 1:
        yield from map(fn, shards)
    else:
        yield from in_processes(fn, shards, workers, begin, arguments, killed=_KILLED)


def _over_spark(
    fn: Callable[[S], R], shards: Iterator[S], engine: EngineOptions, workers: int
) -> Iterator[R]:
    """Start Spark if there is a shard at all."""
    for first in shards:
        from .sql.spark import spark_map

        yield from spark_map(fn, itertools.chain([first], shards), engine, workers)
