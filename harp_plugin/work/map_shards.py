"""A function from one shard to one shard, over processes here or over the executors of Spark."""

from __future__ import annotations

import itertools
import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from ..errors import HarpError
from .processes import UNGUARDED, R, S, refuse_while_importing, results_in_order, start_worker
from .sql.engine import EngineOptions

__all__ = ["map_shards"]


def map_shards(
    fn: Callable[[S], R],
    shards: Iterable[S],
    engine: EngineOptions | None = None,
    workers: int = 1,
    begin: Callable[[], object] | None = None,
) -> Iterator[R]:
    """Apply ``fn`` to every shard, in order; the bytes that it writes are the same for any engine.

    Args:
        fn: a picklable function.
        shards: the shards, read lazily: at most two are held at once for each worker.
        engine: Spark, or processes of this machine (by default).
        workers: processes (1 runs in this one), or for Spark the least number of shards at once.
        begin: a picklable function that is called once in every other process of this machine, not
            by Spark.

    Raises:
        HarpError: a worker was killed, or Spark fails.
    """
    if engine is not None and engine.is_spark:
        shards = iter(shards)
        for first in shards:  # Spark starts if there is a shard at all
            from .sql.spark import spark_map

            yield from spark_map(fn, itertools.chain([first], shards), engine, workers)
        return
    if workers <= 1:
        yield from map(fn, shards)
        return
    refuse_while_importing()
    context = multiprocessing.get_context("spawn")
    before = set(multiprocessing.active_children())
    with ProcessPoolExecutor(workers, context, _begin, (begin,)) as pool:
        try:
            yield from results_in_order(lambda shard: pool.submit(fn, shard), shards, 2 * workers)
        except BrokenProcessPool:
            raise HarpError(
                "a worker process ended: memory ran out (run again with fewer --workers; finished "
                f"shards are kept), or {UNGUARDED}"
            ) from None
        except BaseException as error:
            if not isinstance(error, Exception):
                # An interruption does not wait for shards in flight: they are written whole or not.
                for worker in set(multiprocessing.active_children()) - before:
                    worker.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _begin(begin: Callable[[], object] | None) -> None:
    start_worker()
    if begin is not None:
        begin()
