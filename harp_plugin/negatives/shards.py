"""What the stages of hard negatives have in common: their tables, and the loop over shards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from tqdm import tqdm

from ..work.map_shards import map_shards
from ..work.parquet import write_table
from ..work.sharing import ALONE, Share
from ..work.sql.options import EngineOptions
from ..work.stage import Stage

__all__ = ["Ranking", "over_shards", "rank", "write_rankings"]

_SCHEMA = pa.schema(
    [("id", pa.int64()), ("pages", pa.list_(pa.int64())), ("scores", pa.list_(pa.float32()))]
)

Shard = TypeVar("Shard")


class Ranking(NamedTuple):
    """Pages that are ranked for a query, best first.

    Attributes:
        pages: their ids, int64 of shape (pages,).
        scores: their scores, float32 of shape (pages,), descending.
    """

    pages: np.ndarray
    scores: np.ndarray


def rank(pages: np.ndarray, scores: np.ndarray, depth: int | None = None) -> Ranking:
    """Rank pages by score, those of the same score by id, and keep the best ``depth``."""
    order = np.lexsort((pages, -scores))[:depth]
    return Ranking(pages[order].astype(np.int64), scores[order].astype(np.float32))


def write_rankings(
    stage: Stage,
    table: str,
    part: str,
    ids: np.ndarray,
    rankings: Sequence[Ranking],
    drops: Mapping[str, int],
) -> None:
    """Write a shard, a row for each query, and commit it, unless another host has done so.

    Args:
        stage: the stage of the shard.
        table: the table that the shard is a part of.
        part: the name of the file, without its ending.
        ids: the ids of the queries.
        rankings: one for each query.
        drops: the numbers of queries with a reason why nothing is retrieved for them.
    """
    name = f"{table}-{part}"
    if stage.shard_done(name):
        return
    offsets = np.cumsum([0, *(len(ranking.pages) for ranking in rankings)]).astype(np.int32)
    empty = Ranking(np.zeros(0, np.int64), np.zeros(0, np.float32))
    columns = (np.concatenate(column) for column in zip(*rankings, empty, strict=True))
    lists = [pa.ListArray.from_arrays(pa.array(offsets), pa.array(column)) for column in columns]
    batch = pa.RecordBatch.from_arrays([pa.array(ids, pa.int64()), *lists], schema=_SCHEMA)
    file = write_table(stage.folder / table / f"{part}.parquet", _SCHEMA, [batch])
    stage.finish_shard(name, {table: len(ids)}, drops, [file])


def over_shards(
    fn: Callable[[Shard], None],
    shards: Mapping[str, Shard],
    stage: Stage,
    workers: int,
    quiet: bool,
    begin: Callable[..., None] | None = None,
    *arguments: Any,
    engine: EngineOptions | None = None,
    share: Share = ALONE,
) -> None:
    """Apply ``fn`` to the shards, by name, that the stage has not finished; see `map_shards`."""
    count = sum(not stage.shard_done(name) for name in shards)
    with tqdm(total=len(shards), unit="shard", desc=stage.kind, disable=quiet) as bar:
        bar.update(len(shards) - count)
        unfinished = share.unfinished(stage, shards)
        workers = min(workers, count)
        for _ in map_shards(fn, unfinished, engine, workers, begin, *arguments):
            bar.update()
