"""The loop of every kind of hard negatives: queries are ranked shard by shard, into one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..tasks.registry import ExampleOptions
from ..work.build_stage import BuildRequest, finish_shards, part_name, parts_of
from ..work.parquet import schema_of, write_table
from ..work.stage import Stage
from .options import NegativeOptions
from .queries import QUERIES, BuildTexts, needed_queries

__all__ = ["Loader", "Ranker", "Ranking", "mine", "rank", "recorded_options"]

QUERIES_PER_SHARD = 5_000
"""The most queries of a shard."""
_SCHEMA = schema_of("id int64, pages int64[], scores float32[]")


class Ranking(NamedTuple):
    """Pages that are ranked for a query, best first.

    Attributes:
        pages: their ids, int64 of shape (pages,).
        scores: their scores, float32 of shape (pages,), descending.
    """

    pages: np.ndarray
    scores: np.ndarray


Ranker = Callable[[BuildTexts, str, np.ndarray], Sequence[Ranking]]
"""Ranks pages for queries: the texts of the build, one of `QUERIES`, and the ids of queries."""


Loader = tuple[Any, ...]
"""A function that returns a `Ranker`, and its arguments: it is called once in each process."""


def recorded_options(request: BuildRequest) -> dict[str, Any]:
    """Return the options that decide which queries are ranked, and how many pages are kept.

    Raises:
        HarpError: a task is unknown, or none of them draws other pages.
    """
    return {
        "queries": needed_queries(request.of(ExampleOptions).tasks),
        "depth": request.of(NegativeOptions).negatives_depth,
        "queries_per_shard": QUERIES_PER_SHARD,
    }


def mine(
    stage: Stage,
    request: BuildRequest,
    loader: Loader,
    options: Mapping[str, Any] | None = None,
    **machine: Any,
) -> bool:
    """Rank pages for all queries of a stage.

    A table has a row for each query: id, pages (ranked, best first; pages of the same score by id),
    scores. A query for which nothing is retrieved has empty lists, and is counted as dropped.

    Args:
        stage: a started stage.
        request: what the build is asked to do.
        loader: loads what ranks; picklable and hashable where several processes rank.
        options: what queries there are, as `recorded_options`; None for those of the stage.
        machine: workers and the like, as `finish_shards` takes them.

    Returns:
        Whether the shards of all hosts are finished.
    """
    options = options or stage.options
    texts = BuildTexts(request.directory)
    shards: dict[str, tuple[str, np.ndarray]] = {}
    for queries in options["queries"]:
        texts.open(queries)  # verifies the tables once for all workers
        parts = parts_of(texts.ids(queries), options["queries_per_shard"])
        shards |= {f"{queries}-{name}": (queries, part) for name, part in parts.items()}
    try:
        fn = partial(_mine_shard, loader=loader, directory=request.directory, stage=stage)
        return finish_shards(stage, request, fn, shards, **machine)
    finally:
        _open.cache_clear()


def rank(pages: np.ndarray, scores: np.ndarray, depth: int | None = None) -> Ranking:
    """Rank pages by score, those of the same score by id, and keep the best ``depth``."""
    order = np.lexsort((pages, -scores))[:depth]
    return Ranking(pages[order].astype(np.int64), scores[order].astype(np.float32))


@lru_cache(maxsize=1)
def _open(loader: Loader, directory: Path) -> tuple[Ranker, BuildTexts]:
    """Load what ranks and open the texts, once in a process."""
    load, *arguments = loader
    return load(*arguments), BuildTexts(directory)


def _mine_shard(
    shard: tuple[str, np.ndarray], *, loader: Loader, directory: Path, stage: Stage
) -> None:
    ranker, texts = _open(loader, directory)
    table, ids = shard
    rankings = ranker(texts, table, ids)
    name = part_name(ids)
    empty = sum(not len(ranking.pages) for ranking in rankings)
    drops = {f"{QUERIES[table]} for which no page is retrieved": empty} if empty else {}
    pages, scores = [r.pages for r in rankings], [r.scores for r in rankings]
    batch = pa.RecordBatch.from_pydict({"id": ids, "pages": pages, "scores": scores}, _SCHEMA)
    file = write_table(stage.folder / table / f"{name}.parquet", _SCHEMA, [batch])
    stage.finish_shard(f"{table}-{name}", {table: len(ids)}, drops, [file])
