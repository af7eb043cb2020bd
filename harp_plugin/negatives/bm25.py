"""The stage ``bm25_negatives``: the pages that BM25 ranks high for each query of a build."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..errors import HarpError
from ..work.build_stage import BuildRequest, BuildStage, StageOptions
from ..work.stage import Stage
from .mining import Ranker, Ranking, mine, rank, recorded_options
from .queries import BuildTexts

if TYPE_CHECKING:
    from ..ranking.bm25 import Bm25

__all__ = ["best_pages", "build_bm25_negatives"]

_K1, _B = 0.9, 0.4
# Four times as fast as PISA's default for queries of many words (90,000 documents, 64 words).
_ALGORITHM = "maxscore"
_RESULTS_AT_ONCE = 200_000

logger = logging.getLogger(__name__)


def load_ranker(directory: Path, depth: int) -> Ranker:
    """Open the index of a build's documents, whose docnos are page ids.

    Args:
        directory: the folder of the build; its index has been made.
        depth: the number of results for each query.
    """
    bm25 = _bm25(directory)
    return lambda texts, queries, ids: best_pages(bm25, texts.queries(queries, ids), depth)


def best_pages(bm25: Bm25, queries: Sequence[str], depth: int) -> list[Ranking]:
    """Rank the best ``depth`` pages for each query.

    PISA leaves open which of the pages that share the score of the last one it retrieves. So more
    are retrieved, until a lower score shows that none of them is missing.
    """
    rankings: dict[int, Ranking] = {}
    waiting, most = list(range(len(queries))), 2 * depth
    while waiting:
        at_once = max(1, _RESULTS_AT_ONCE // most)
        cut: list[int] = []
        for first in range(0, len(waiting), at_once):
            numbers = waiting[first : first + at_once]
            results = _results(bm25, [queries[number] for number in numbers], most)
            for number, (pages, scores) in zip(numbers, results, strict=True):
                rankings[number] = rank(pages, scores, depth)
                if len(pages) == most and scores[-1] == rankings[number].scores[-1]:
                    cut.append(number)
        waiting, most = cut, 4 * most
    return [rankings[number] for number in range(len(queries))]


def _results(bm25: Bm25, queries: list[str], depth: int) -> list[tuple[np.ndarray, np.ndarray]]:
    bm25.num_results = depth
    frame = pd.DataFrame({"qid": range(len(queries)), "query": queries})
    results = bm25.transform(frame.astype({"qid": str}))
    starts = np.searchsorted(results["qid"].astype(np.int64), np.arange(1, len(queries)))
    pages, scores = results["docno"].to_numpy().astype(np.int64), results["score"].to_numpy()
    return list(zip(np.split(pages, starts), np.split(scores, starts), strict=True))


def _options(request: BuildRequest) -> StageOptions:
    recorded = {**recorded_options(request), "bm25_k1": _K1, "bm25_b": _B}
    return StageOptions(recorded, packages=("pyterrier-pisa", "pyarrow"))


def _check(request: BuildRequest) -> None:
    """See that PISA is installed, before anything is computed."""
    import pyterrier_pisa  # noqa: F401


def _retrieve(stage: Stage, request: BuildRequest) -> dict[str, Any]:
    """Retrieve the best documents for each query by which tasks draw hard negatives.

    The documents of the build are indexed, title and lead, and the index is removed when the stage
    is finished. A query for which nothing is retrieved is counted as dropped. Spark retrieves in
    its executors, from an index that this process makes.

    Raises:
        HarpError: PISA fails, or nothing is retrieved.
    """
    _bm25(request.directory, request.quiet).make()
    loader = load_ranker, request.directory, stage.options["depth"]
    mine(stage, request, loader, workers=request.workers, engine=request.engine)
    _check_results(*stage.counts())
    return {}


def _bm25(directory: Path, quiet: bool = True) -> Bm25:
    from ..ranking.bm25 import Bm25

    texts, folder = BuildTexts(directory), directory / "mapped"
    return Bm25(texts, folder, k1=_K1, b=_B, algorithm=_ALGORITHM, quiet=quiet)


def _remove_index(request: BuildRequest) -> None:
    _bm25(request.directory).artifact.clear()


def _check_results(rows: Mapping[str, int], drops: Mapping[str, int]) -> None:
    """Warn where nothing is retrieved for most queries.

    Raises:
        HarpError: nothing is retrieved for any query.
    """
    empty, count = sum(drops.values()), sum(rows.values())
    if rows and empty == count:
        raise HarpError(
            "BM25 finds no page for any query: it searches by words that are not stop words; "
            "leave out --negatives"
        )
    if empty > count / 2:
        logger.warning(
            "BM25 finds no page for %d of %d queries, which have no hard negatives", *(empty, count)
        )


build_bm25_negatives = BuildStage(
    "bm25_negatives", ("corpus", "graph"), _options, _retrieve, _check, clean=_remove_index
)
