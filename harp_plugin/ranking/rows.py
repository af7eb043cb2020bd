"""Rows of a frame → scores, by one cross-encoder or by several that share texts and tokens."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyterrier as pt

from .cache import ScoreCache
from .pairs import distinct, distinct_pairs
from .passages import Passages
from .scorer import Scorer
from .texts import strings

if TYPE_CHECKING:
    from .transformer import HarpReranker

MANY_ROWS = 16384
FEW_ROWS = 1024
"""How many rows are scored at once: few where documents are tokenised whole, and where a cache is
to be written often."""


class Tokenised:
    """Texts, tokenised when they are needed and once per tokenizer."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self._tokens: dict[str, dict[int, np.ndarray]] = {}

    def tokens(self, scorer: Scorer, places: np.ndarray) -> list[np.ndarray]:
        """The token ids of some texts, each (length,) int32, whole and without special tokens."""
        known = self._tokens.setdefault(scorer.tokenizer_key, {})
        missing = [place for place in places.tolist() if place not in known]
        texts = [self.texts[place] for place in missing]
        known.update(zip(missing, scorer.tokenise(texts, max_length=None), strict=True))
        return [known[place] for place in places.tolist()]


class Part:
    """Some rows of a frame: their distinct queries, documents and pairs.

    Attributes:
        rows: (rows,) places in the frame.
        pairs: (pairs, 2) places of query and document.
        inverse: (rows,) the pair of each row.
    """

    def __init__(
        self, rows: np.ndarray, pairs: np.ndarray, queries: list[str], documents: list[str]
    ) -> None:
        self.rows = rows
        self.queries = Tokenised(queries)
        self.documents = Tokenised(documents)
        self.pairs, self.inverse = distinct_pairs(pairs)


def score_rows(rerankers: Sequence[HarpReranker], frame: pd.DataFrame) -> np.ndarray:
    """Score each row by each reranker; texts are the first one's.

    Returns:
        (rows, rerankers) float64.

    Raises:
        HarpError: a text is missing; the message names its qid and docno.
    """
    scores = np.empty((len(frame), len(rerankers)))
    caches = [reranker.score_cache() for reranker in rerankers] if len(frame) else []
    verbose = any(reranker.verbose for reranker in rerankers)
    with pt.tqdm(total=scores.size, desc="score", unit="pair", disable=not verbose) as bar:
        for part in _parts(rerankers, frame):
            for place, (reranker, cache) in enumerate(zip(rerankers, caches, strict=True)):
                share = _Share(bar, len(part.rows))
                score = partial(_score_pairs, reranker, part, len(rerankers) > 1, share)
                scores[part.rows, place] = _kept_or_scored(cache, part, score)[part.inverse]
                share.finish()
    return scores


def _parts(rerankers: Sequence[HarpReranker], frame: pd.DataFrame) -> Iterator[Part]:
    """Cut the rows between documents, so that each text is read and tokenised once."""
    texts = rerankers[0].texts
    at_once = _rows_at_once(rerankers)
    document_of, keys = texts.documents(frame)
    query_of, queries = distinct(strings(frame, "query"))
    order = np.argsort(document_of, kind="stable")
    last_of_part = (np.cumsum(np.bincount(document_of)) - 1) // at_once
    part_of = last_of_part[document_of[order]]
    for rows in np.split(order, np.flatnonzero(np.diff(part_of)) + 1):
        if len(rows):
            in_queries, of_query = np.unique(query_of[rows], return_inverse=True)
            in_documents, of_document = np.unique(document_of[rows], return_inverse=True)
            of_text, found = distinct(texts.read([keys[place] for place in in_documents], frame))
            yield Part(
                rows,
                np.stack([of_query, of_text[of_document]], axis=1),
                [queries[place] for place in in_queries],
                found,
            )


def _rows_at_once(rerankers: Sequence[HarpReranker]) -> int:
    if any(r.cache is not None or not r.windows.whole_input for r in rerankers):
        return FEW_ROWS
    in_frame = rerankers[0].dataset is None
    return sys.maxsize if in_frame and len(rerankers) == 1 else MANY_ROWS


def _kept_or_scored(
    cache: ScoreCache | None, part: Part, score: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    if cache is None:
        return score(part.pairs)
    return cache.scores(
        part.queries.texts,
        part.documents.texts,
        part.pairs,
        lambda lacking: score(part.pairs[lacking]),
    )


def _score_pairs(
    reranker: HarpReranker,
    part: Part,
    share_tokens: bool,
    progress: Callable[..., Any],
    pairs: np.ndarray,
) -> np.ndarray:
    """(n, 2) pairs of the part's places → (n,) scores."""
    scorer, passages = reranker.scorer, reranker.windows
    if passages.whole_input and not share_tokens:
        queries = [part.queries.texts[place] for place in pairs[:, 0]]
        documents = [part.documents.texts[place] for place in pairs[:, 1]]
        return scorer.score(queries, documents, verbose=True, progress=progress)
    needed = [np.unique(side, return_inverse=True) for side in pairs.T]
    query_tokens = part.queries.tokens(scorer, needed[0][0])
    document_tokens = part.documents.tokens(scorer, needed[1][0])
    pairs = np.stack([inverse for _, inverse in needed], axis=1)
    if passages.whole_input:
        return scorer.score_tokens(
            query_tokens, document_tokens, pairs, verbose=True, progress=progress
        )
    windows, window_pairs, starts = _windows(scorer, passages, query_tokens, document_tokens, pairs)
    scores = scorer.score_tokens(
        query_tokens, windows, window_pairs, verbose=True, progress=progress
    )
    return passages.aggregate(scores, starts)


def _windows(
    scorer: Scorer,
    passages: Passages,
    queries: list[np.ndarray],
    documents: list[np.ndarray],
    pairs: np.ndarray,
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Windows as views of the documents, pairs of query and window, and each pair's first one."""
    windows: list[np.ndarray] = []
    known: dict[tuple[int, int], range] = {}
    window_pairs: list[tuple[int, int]] = []
    starts = np.empty(len(pairs), dtype=np.int64)
    rooms = [scorer.room_beside(len(query)) for query in queries]
    for place, (query, document) in enumerate(pairs.tolist()):
        tokens, room = documents[document], rooms[query]
        key = document, min(room, passages.length or room)
        if key not in known:
            views = [tokens[window] for window in passages.windows(len(tokens), room)]
            known[key] = range(len(windows), len(windows) + len(views))
            windows.extend(views)
        starts[place] = len(window_pairs)
        window_pairs.extend((query, window) for window in known[key])
    return windows, np.array(window_pairs, dtype=np.int64), starts


class _Share:
    """The part of a progress bar that one model's scores of one part fill.

    Stands in for the bar that a scorer makes of its own pairs or windows.
    """

    def __init__(self, bar: Any, rows: int) -> None:
        self._bar, self._rows = bar, rows
        self._done, self._seen, self._total = 0, 0, 1

    def __call__(self, *, total: int, **_: Any) -> _Share:
        self._total = max(total, 1)
        return self

    def __enter__(self) -> _Share:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, count: int) -> None:
        self._seen += count
        self._show(min(self._rows * self._seen // self._total, self._rows))

    def finish(self) -> None:
        self._show(self._rows)

    def _show(self, done: int) -> None:
        self._bar.update(done - self._done)
        self._done = done
