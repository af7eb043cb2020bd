"""Steps of stages, in a module that a child process imports in no time."""

import os
import signal
import time
from pathlib import Path


def small(tables):
    source = tables["source"]
    return source.filter(source.id < 100)


def by_text(tables):
    return tables["small"].select("text", "id")


def sums(tables):
    import ibis

    table = tables["small"]
    return ibis.union(
        table.aggregate(count=table.count()).mutate(reason=ibis.literal("some")),
        table.filter(table.id < 0)
        .aggregate(count=table.id.sum())
        .mutate(reason=ibis.literal("none")),
    )


def largest(tables):
    import ibis

    table = tables["by_text"]
    return table.aggregate(count=table.id.max()).mutate(name=ibis.literal("largest"))


def fails(tables):
    raise RuntimeError("asked for\nwhat nobody needs")


def dies(tables):
    os.kill(os.getpid(), signal.SIGKILL)


def absent_column(tables):
    return tables["source"].select("nothing")


def pairs(tables):
    """Two million rows: every number beside a thousand others."""
    source = tables["source"]
    other = source.view().filter(lambda t: t.id < 1000).rename(beside="id", said="text")
    crossed = source.cross_join(other)
    return crossed.select(id=crossed.id * 10_000 + crossed.beside, text="text", said="said")


def waits(tables):
    Path(os.environ["HARP_TEST_CHILD"]).write_text(str(os.getpid()))
    time.sleep(60)
