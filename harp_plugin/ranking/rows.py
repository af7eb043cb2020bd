"""The scores of a frame's rows, by one model or by several that share texts and tokens."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyterrier as pt

from ..text import query_passage
from .scorer import Scorer
from .texts import TextSource, column_texts
from .tokens import distinct, distinct_pairs
from .windows import DocumentWindows

__all__ = ["Reranker", "score_rows"]

_MANY_ROWS = 16384
_FEW_ROWS = 1024
"""How many rows are scored at once: few where documents are tokenized whole."""


class Reranker(Protocol):
    """What scores the rows of a frame by one model.

    Attributes:
        verbose: whether a progress bar is shown.
        scorer: scores pairs of texts.
        windows: how long documents are cut.
        texts: where the documents' texts come from.
    """

    verbose: bool

    @property
    def scorer(self) -> Scorer: ...

    @property
    def windows(self) -> DocumentWindows: ...

    @property
    def texts(self) -> TextSource: ...

    def validate(self, inp: pd.DataFrame, context: pt.Transformer | None = None) -> None:
        """Check that a frame has the columns that are read."""


def score_rows(rerankers: Sequence[Reranker], frame: pd.DataFrame) -> np.ndarray:
    """Score each row of a frame by each reranker.

    Args:
        rerankers: they read the same texts.
        frame: rows of ``qid``, ``query`` and ``docno``, and the columns that hold texts.

    Returns:
        (rows, rerankers) float64.

    Raises:
        HarpError: a text is missing; the message names its qid and docno.
    """
    scores = np.empty((len(frame), len(rerankers)))
    models = [(one.scorer, one.windows) for one in rerankers] if len(frame) else []
    verbose = any(reranker.verbose for reranker in rerankers)
    with pt.tqdm(total=scores.size, desc="score", unit="pair", disable=not verbose) as bar:
        rows_at_once = _rows_at_once([windows for _, windows in models], rerankers[0].texts)
        for batch in _batches(rerankers[0].texts, frame, rows_at_once):
            for number, (scorer, windows) in enumerate(models):
                bar_part = partial(_part_of_bar, bar, len(batch.rows))
                pairs = batch.scores(scorer, windows, bar_part, alone=len(models) == 1)
                scores[batch.rows, number] = pairs[batch.pair_of_row]
    return scores


@dataclass
class _RowBatch:
    """Rows of a frame that are scored at once: their distinct queries, documents and pairs.

    Attributes:
        rows: (rows,) indices in the frame.
        pairs: (pairs, 2) indices of query and document.
        pair_of_row: (rows,) the index of each row's pair.
        queries: the distinct texts of queries.
        documents: the distinct texts of documents.
    """

    rows: np.ndarray
    pairs: np.ndarray
    pair_of_row: np.ndarray
    queries: list[str]
    documents: list[str]
    _tokens: dict[str, list[list[np.ndarray]]] = field(default_factory=dict)

    def pair_texts(self) -> tuple[list[str], list[str]]:
        """Return the query and the document of each pair."""
        queries, documents = self.pairs.T.tolist()
        return [self.queries[n] for n in queries], [self.documents[n] for n in documents]

    def tokens(self, scorer: Scorer) -> list[list[np.ndarray]]:
        """Tokenize queries and documents, whole, and once for scorers with equal tokenizers.

        Returns:
            The (length,) int32 token ids of each query, and of each document.
        """
        key = scorer.tokenizer_key
        if key not in self._tokens:
            self._tokens[key] = [scorer.tokenize(texts) for texts in (self.queries, self.documents)]
        return self._tokens[key]

    def scores(
        self, scorer: Scorer, windows: DocumentWindows, progress: Callable[..., Any], *, alone: bool
    ) -> np.ndarray:
        """Score the pairs by one model, (pairs,).

        Args:
            scorer: the model.
            windows: how it cuts long documents.
            progress: makes the progress bar.
            alone: whether no other model reads the token ids.
        """
        is_matching = windows.passages == "matching"
        if is_matching or (windows.is_whole_input and alone):
            queries, documents = self.pair_texts()
            if is_matching:
                documents = list(map(query_passage, queries, documents))
            return scorer.score(queries, documents, verbose=True, progress=progress)
        score = partial(scorer.score_tokens, verbose=True, progress=progress)
        query_tokens, document_tokens = self.tokens(scorer)
        if windows.is_whole_input:
            return score(query_tokens, document_tokens, self.pairs)
        free_tokens = [scorer.encoder.most_document_tokens(len(query)) for query in query_tokens]
        tokens, window_pairs, starts = windows.cut(document_tokens, self.pairs, free_tokens)
        return windows.aggregate(score(query_tokens, tokens, window_pairs), starts)


def _batches(texts: TextSource, frame: pd.DataFrame, rows_at_once: int) -> Iterator[_RowBatch]:
    """Cut the rows between documents, so that each text is read and tokenized once."""
    document_of, keys = texts.documents(frame)
    query_of, queries = distinct(column_texts(frame, "query"))
    order = np.argsort(document_of, kind="stable")
    last_rows = np.cumsum(np.bincount(document_of)) - 1
    batch_of = (last_rows // rows_at_once)[document_of[order]]
    for rows in np.split(order, np.flatnonzero(np.diff(batch_of)) + 1):
        if len(rows):
            query_numbers, query_of_row = np.unique(query_of[rows], return_inverse=True)
            document_numbers, document_of_row = np.unique(document_of[rows], return_inverse=True)
            document_keys = [keys[number] for number in document_numbers]
            text_of, document_texts = distinct(texts.read(document_keys, frame))
            pairs = np.stack([query_of_row, text_of[document_of_row]], axis=1)
            yield _RowBatch(
                rows,
                *distinct_pairs(pairs),
                [queries[number] for number in query_numbers],
                document_texts,
            )


def _rows_at_once(windows: Sequence[DocumentWindows], texts: TextSource) -> int:
    if not all(each.is_whole_input for each in windows):
        return _FEW_ROWS
    return sys.maxsize if texts.in_frame and len(windows) == 1 else _MANY_ROWS


@contextmanager
def _part_of_bar(bar: Any, rows: int, *, total: int, **_: Any) -> Iterator[Any]:
    """Stand in for the bar that a scorer makes of its own pairs or windows.

    Args:
        bar: of all rows.
        rows: how many rows of it one model's scores of one batch fill.
        total: how many pairs or windows are scored for them.
    """
    start, count = bar.n, 0

    def update(more: int) -> None:
        nonlocal count
        count += more
        bar.update(start + rows * count // total - bar.n)

    yield SimpleNamespace(update=update)
