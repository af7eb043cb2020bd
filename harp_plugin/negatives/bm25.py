"""The stage ``bm25_negatives``: the pages that BM25 ranks high for each query of a build."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ..errors import HarpError
from ..ranking.bm25_index import PISA_LOG, Bm25Index
from ..ranking.pisa import READABLE, muted, plain
from ..work.manifest import read_content, read_manifest
from ..work.provenance import OverwriteRules
from ..work.sql.options import EngineOptions
from ..work.stage import Stage
from .options import NegativeOptions
from .queries import QUERIES, BuildDocuments, BuildTexts
from .shards import Ranking, over_shards, rank, write_rankings

__all__ = ["Bm25Search", "bm25_negatives_stage", "build_bm25_negatives"]

_K1, _B = 0.9, 0.4
# Four times as fast as PISA's default for queries of many words (90,000 documents, 64 words).
_ALGORITHM = "maxscore"
_RESULTS_AT_ONCE = 200_000

logger = logging.getLogger(__name__)


class Bm25Search:
    """Retrieves from an index whose docnos are page ids.

    Args:
        index: which has been made.
        depth: results per query.
    """

    def __init__(self, index: Bm25Index, depth: int) -> None:
        self._depth = depth
        self._log = index.path / PISA_LOG
        with muted(self._log):
            self._retriever = index.retriever(2 * depth, _ALGORITHM)

    def search(self, queries: Sequence[str]) -> list[Ranking]:
        """Rank the best pages for each query.

        PISA leaves open which of the pages that share the score of the last place it retrieves. So
        more are retrieved, until a lower score shows that none of them is missing.
        """
        found: dict[int, Ranking] = {}
        waiting, depth = list(range(len(queries))), 2 * self._depth
        while waiting:
            at_once = max(1, _RESULTS_AT_ONCE // depth)
            cut: list[int] = []
            for first in range(0, len(waiting), at_once):
                numbers = waiting[first : first + at_once]
                results = self._retrieve([queries[number] for number in numbers], depth)
                for number, (pages, scores) in zip(numbers, results, strict=True):
                    found[number] = rank(pages, scores, self._depth)
                    if len(pages) == depth and scores[-1] == found[number].scores[-1]:
                        cut.append(number)
            waiting, depth = cut, 4 * depth
        return [found[number] for number in range(len(queries))]

    def _retrieve(self, queries: list[str], depth: int) -> list[tuple[np.ndarray, np.ndarray]]:
        self._retriever.num_results = depth
        frame = pd.DataFrame({"qid": range(len(queries)), "query": list(map(plain, queries))})
        with muted(self._log):
            results = self._retriever.transform(frame.astype({"qid": str}))
        starts = np.searchsorted(results["qid"].astype(np.int64), np.arange(1, len(queries)))
        pages, scores = results["docno"].to_numpy().astype(np.int64), results["score"].to_numpy()
        return list(zip(np.split(pages, starts), np.split(scores, starts), strict=True))


class _Shard(NamedTuple):
    queries: str
    name: str
    ids: np.ndarray
    directory: Path
    stage: Stage
    depth: int


def build_bm25_negatives(
    directory: Path,
    queries: Sequence[str],
    options: NegativeOptions,
    engine: EngineOptions | None = None,
    *,
    workers: int = 1,
    queries_per_shard: int = 5_000,
    quiet: bool = True,
    rules: OverwriteRules | None = None,
) -> dict[str, Any]:
    """Retrieve the best documents for each query by which tasks draw hard negatives.

    The documents of the build are indexed, title and lead, and the index is removed when the stage
    is finished. A table has a row for each query: id, pages (ranked, best first; pages of the same
    score by id), scores. A query for which nothing is retrieved has empty lists, and is counted as
    dropped.

    Args:
        directory: build folder with finished corpus and graph stages.
        queries: the tables to make, of `harp_plugin.negatives.queries.QUERIES`.
        options: how many pages are kept.
        engine: Spark retrieves in its executors, from an index that this process makes.
        workers: the number of processes; the bytes are the same for any.
        queries_per_shard: the most queries of a shard.
        quiet: show no progress bar.
        rules: what may be done with other work in the folder.

    Returns:
        The stage's manifest.

    Raises:
        HarpError: most letters of the documents are not Latin, PISA fails, nothing is retrieved, an
            earlier stage is unfinished or damaged, or the folder holds other work or other files.
    """
    read_content(directory, "corpus", "graph")
    stage = bm25_negatives_stage(directory, queries, options, rules, queries_per_shard)
    index = _index(directory, quiet)
    if stage.is_finished():
        index.remove()
        return read_manifest(stage.folder)
    stage.start()
    shards = _shards(stage, directory, options.negatives_depth, queries_per_shard)
    index.make()
    try:
        over_shards(_retrieve_shard, shards, stage, workers, quiet, engine=engine)
    finally:
        _opened.cache_clear()
    _check_found(*stage.counts())
    manifest = stage.finish()
    index.remove()
    return manifest


def bm25_negatives_stage(
    directory: Path,
    queries: Sequence[str],
    options: NegativeOptions,
    rules: OverwriteRules | None = None,
    queries_per_shard: int = 5_000,
) -> Stage:
    """The stage, not started. Its inputs are None while they are unfinished."""
    recorded = {
        "queries": list(queries),
        "depth": options.negatives_depth,
        "queries_per_shard": queries_per_shard,
        "bm25_k1": _K1,
        "bm25_b": _B,
    }
    inputs = read_content(directory, "corpus", "graph", needed=False)
    packages = ("pyterrier-pisa", "pyarrow")
    return Stage(directory / "bm25_negatives", recorded, inputs, packages, rules=rules)


def _index(directory: Path, quiet: bool = True) -> Bm25Index:
    documents = BuildDocuments(directory)
    return Bm25Index(documents, directory / "mapped", k1=_K1, b=_B, quiet=quiet)


def _shards(stage: Stage, directory: Path, depth: int, size: int) -> dict[str, _Shard]:
    texts = BuildTexts(directory, verify=True)
    shards: dict[str, _Shard] = {}
    for queries in stage.options["queries"]:
        ids = texts.ids(queries)
        texts.open(queries)  # verifies the tables once for all workers
        for first in range(0, max(1, len(ids)), size):
            part = ids[first : first + size]
            name = f"from-{part[0] if len(part) else 0:019d}"
            shards[f"{queries}-{name}"] = _Shard(queries, name, part, directory, stage, depth)
    return shards


@lru_cache(maxsize=1)
def _opened(directory: Path, depth: int) -> tuple[BuildTexts, Bm25Search]:
    """Open the texts and the index, once in a process."""
    return BuildTexts(directory, verify=False), Bm25Search(_index(directory), depth)


def _retrieve_shard(shard: _Shard) -> None:
    texts, search = _opened(shard.directory, shard.depth)
    queries = texts.queries(shard.queries, shard.ids)
    rankings = search.search(queries)
    drops: Counter[str] = Counter()
    for query, ranking in zip(queries, rankings, strict=True):
        if not len(ranking.pages):
            is_readable = READABLE.search(plain(query))
            drops[(_not_found if is_readable else _unreadable)(shard.queries)] += 1
    write_rankings(shard.stage, shard.queries, shard.name, shard.ids, rankings, drops)


def _unreadable(queries: str) -> str:
    return f"{QUERIES[queries]} without a Latin letter or digit"


def _not_found(queries: str) -> str:
    return f"{QUERIES[queries]} that BM25 finds no page for"


def _check_found(rows: Mapping[str, int], drops: Mapping[str, int]) -> None:
    """Tell how many queries of a script that PISA does not read there are, if most are such.

    Raises:
        HarpError: nothing is retrieved for any query.
    """
    if rows and sum(drops.values()) == sum(rows.values()):
        raise HarpError(
            "BM25 finds no page for any query: it searches by words of Latin letters and digits "
            "that are no stop words; leave out --negatives"
        )
    for queries, count in rows.items():
        if drops[_unreadable(queries)] > count / 2:
            logger.warning(
                "%d of %d queries of %s have no Latin letter or digit, and PISA reads no others: "
                "they have no hard negatives",
                drops[_unreadable(queries)],
                count,
                queries,
            )
