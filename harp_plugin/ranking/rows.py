"""The scores of a frame's rows, by one model or by several that share texts and tokens."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
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
                progress = _PartOfBar(bar, len(batch.rows))
                pairs = _pair_scores(scorer, windows, batch, progress, keep_tokens=len(models) > 1)
                scores[batch.rows, number] = pairs[batch.pair_of_row]
                progress.finish()
    return scores


class _TokenizedTexts:
    """Texts, which are tokenized when they are needed and once per tokenizer."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self._tokens: dict[str, dict[int, np.ndarray]] = {}

    def tokens(self, scorer: Scorer, indices: np.ndarray) -> list[np.ndarray]:
        """Return the token ids of the texts at these indices.

        Returns:
            (length,) int32 for each text, whole and without special tokens.
        """
        tokens = self._tokens.setdefault(scorer.tokenizer_key, {})
        missing = [index for index in indices.tolist() if index not in tokens]
        texts = [self.texts[index] for index in missing]
        tokens.update(zip(missing, scorer.tokenize(texts, max_length=None), strict=True))
        return [tokens[index] for index in indices.tolist()]


class _RowBatch:
    """Rows of a frame that are scored at once: their distinct queries, documents and pairs.

    Attributes:
        rows: (rows,) indices in the frame.
        pairs: (pairs, 2) indices of query and document.
        pair_of_row: (rows,) the index of each row's pair.
    """

    def __init__(
        self, rows: np.ndarray, pairs: np.ndarray, queries: list[str], documents: list[str]
    ) -> None:
        self.rows = rows
        self.queries = _TokenizedTexts(queries)
        self.documents = _TokenizedTexts(documents)
        self.pairs, self.pair_of_row = distinct_pairs(pairs)


def _pair_scores(
    scorer: Scorer,
    windows: DocumentWindows,
    batch: _RowBatch,
    progress: Callable[..., Any],
    *,
    keep_tokens: bool,
) -> np.ndarray:
    """Score the pairs of a batch by one model, (pairs,).

    Args:
        scorer: the model.
        windows: how it cuts long documents.
        batch: the rows.
        progress: makes the progress bar.
        keep_tokens: whether token ids are kept for the next model.
    """
    pairs = batch.pairs
    is_matching = windows.passages == "matching"
    if is_matching or (windows.is_whole_input and not keep_tokens):
        queries = [batch.queries.texts[number] for number in pairs[:, 0]]
        documents = [batch.documents.texts[number] for number in pairs[:, 1]]
        if is_matching:
            documents = list(map(query_passage, queries, documents))
        return scorer.score(queries, documents, verbose=True, progress=progress)
    score = partial(scorer.score_tokens, verbose=True, progress=progress)
    (query_numbers, query_of_pair), (document_numbers, document_of_pair) = (
        np.unique(side, return_inverse=True) for side in pairs.T
    )
    query_tokens = batch.queries.tokens(scorer, query_numbers)
    document_tokens = batch.documents.tokens(scorer, document_numbers)
    pairs = np.stack([query_of_pair, document_of_pair], axis=1)
    if windows.is_whole_input:
        return score(query_tokens, document_tokens, pairs)
    free_tokens = [scorer.most_document_tokens(len(query)) for query in query_tokens]
    tokens, window_pairs, starts = _cut(windows, document_tokens, pairs, free_tokens)
    return windows.aggregate(score(query_tokens, tokens, window_pairs), starts)


def _cut(
    windows: DocumentWindows,
    documents: list[np.ndarray],
    pairs: np.ndarray,
    free_tokens: list[int],
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """Cut the documents of pairs into windows, which pairs with equally long windows share.

    Args:
        windows: how documents are cut.
        documents: (length,) token ids of each.
        pairs: (pairs, 2) indices of query and document.
        free_tokens: how many tokens fit together with each query.

    Returns:
        The (length,) token ids of each window, a view of its document; (windows of all pairs, 2)
        indices of query and window, those of a pair together; and the (pairs,) index of each pair's
        first window among them.
    """
    tokens: list[np.ndarray] = []
    windows_of: dict[tuple[int, int], range] = {}
    window_pairs: list[tuple[int, int]] = []
    starts = np.empty(len(pairs), dtype=np.int64)
    for number, (query, document) in enumerate(pairs.tolist()):
        key = document, windows.length_beside(free_tokens[query])
        if key not in windows_of:
            whole = documents[document]
            views = [whole[part] for part in windows.slices(len(whole), free_tokens[query])]
            windows_of[key] = range(len(tokens), len(tokens) + len(views))
            tokens.extend(views)
        starts[number] = len(window_pairs)
        window_pairs.extend((query, window) for window in windows_of[key])
    return tokens, np.array(window_pairs, dtype=np.int64), starts


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
            yield _RowBatch(
                rows,
                np.stack([query_of_row, text_of[document_of_row]], axis=1),
                [queries[number] for number in query_numbers],
                document_texts,
            )


def _rows_at_once(windows: Sequence[DocumentWindows], texts: TextSource) -> int:
    if not all(each.is_whole_input for each in windows):
        return _FEW_ROWS
    return sys.maxsize if texts.in_frame and len(windows) == 1 else _MANY_ROWS


class _PartOfBar:
    """The part of a progress bar that one model's scores of one batch of rows fill.

    Stands in for the bar that a scorer makes of its own pairs or windows.
    """

    def __init__(self, bar: Any, rows: int) -> None:
        self._bar, self._rows = bar, rows
        self._shown, self._count, self._total = 0, 0, 1

    def __call__(self, *, total: int, **_: Any) -> _PartOfBar:
        self._total = max(total, 1)
        return self

    def __enter__(self) -> _PartOfBar:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, count: int) -> None:
        self._count += count
        self._show(min(self._rows * self._count // self._total, self._rows))

    def finish(self) -> None:
        self._show(self._rows)

    def _show(self, rows: int) -> None:
        self._bar.update(rows - self._shown)
        self._shown = rows
