"""Windows of long documents, and one score of a document from the scores of its windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import HarpError
from ..options import Count, checked
from .options import Passages

__all__ = ["DocumentWindows"]


@dataclass(frozen=True)
class DocumentWindows:
    """How a document that may be longer than the model's input is scored.

    Args:
        passages: ``first``: by its first window. ``max``, ``mean``: by the best or the mean of the
            scores of its windows. ``top2``: by the mean of the two best, or by the only one.
            ``matching``: by what `query_passage` finds, without windows.
        length: tokens of a window; None for as many as fit next to the query. No window is longer
            than that.
        stride: tokens from one window's start to the next one's; None for half a window.

    Raises:
        HarpError: an argument makes no sense.
    """

    passages: str = "first"
    length: int | None = None
    stride: int | None = None

    def __post_init__(self) -> None:
        checked("passages", Passages, self.passages)
        checked("passage_length", Count | None, self.length)
        checked("passage_stride", Count | None, self.stride)
        if self.passages == "matching" and (self.length or self.stride):
            raise HarpError(
                "passage_length and passage_stride change nothing with passages matching, whose "
                "passages have a fixed number of words: leave them out"
            )
        if self.length and self.stride and self.stride > self.length:
            raise HarpError(
                f"passage_stride {self.stride} is over passage_length {self.length}: tokens"
                " between windows would never be read; choose a smaller stride"
            )

    @property
    def is_whole_input(self) -> bool:
        """Return whether a document is simply cut where the model's input ends."""
        return self.passages == "first" and self.length is None

    def length_beside(self, free_tokens: int) -> int:
        """The tokens of a full window, where so many fit next to the query."""
        return max(min(self.length or free_tokens, free_tokens), 1)

    def slices(self, tokens: int, free_tokens: int) -> Iterator[slice]:
        """Cut a document into windows: all are full but the last, which ends with the document.

        Args:
            tokens: number of tokens of the document.
            free_tokens: number of tokens that fit next to the query.

        Yields:
            The place of each window in the document.
        """
        length = self.length_beside(free_tokens)
        stride = min(self.stride or max(length // 2, 1), length)
        last = 0 if self.passages == "first" else max(tokens - length, 0)
        for start in range(0, last + stride, stride):
            yield slice(start, start + length)

    def cut(
        self, documents: Sequence[np.ndarray], pairs: np.ndarray, free_tokens: Sequence[int]
    ) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
        """Cut the documents of pairs into windows, which pairs with equally long windows share.

        Args:
            documents: (length,) token ids of each.
            pairs: (pairs, 2) indices of query and document.
            free_tokens: how many tokens fit together with each query.

        Returns:
            The (length,) token ids of each window, a view of its document; (windows of all pairs,
            2) indices of query and window, those of a pair together; and the (pairs,) index of each
            pair's first window among them.
        """
        tokens: list[np.ndarray] = []
        windows_of: dict[tuple[int, int], range] = {}
        window_pairs: list[tuple[int, int]] = []
        starts = np.empty(len(pairs), dtype=np.int64)
        for number, (query, document) in enumerate(pairs.tolist()):
            key = document, self.length_beside(free_tokens[query])
            if key not in windows_of:
                whole = documents[document]
                views = [whole[part] for part in self.slices(len(whole), free_tokens[query])]
                windows_of[key] = range(len(tokens), len(tokens) + len(views))
                tokens.extend(views)
            starts[number] = len(window_pairs)
            window_pairs.extend((query, window) for window in windows_of[key])
        return tokens, np.array(window_pairs, dtype=np.int64), starts

    def aggregate(self, scores: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """Compute one score per document from the scores of its windows.

        Args:
            scores: (windows,) those of a document together.
            starts: (documents,) the index of each document's first window.

        Returns:
            (documents,) scores.
        """
        if self.passages in ("first", "matching"):
            return scores[starts]
        return _AGGREGATIONS[self.passages](scores.astype(np.float64), starts)


def _mean(scores: np.ndarray, starts: np.ndarray) -> np.ndarray:
    return np.add.reduceat(scores, starts) / np.diff(starts, append=len(scores))


def _mean_of_two_best(scores: np.ndarray, starts: np.ndarray) -> np.ndarray:
    sizes = np.diff(starts, append=len(scores))
    owners = np.repeat(np.arange(len(starts)), sizes)
    ordered = scores[np.lexsort((-scores, owners))]
    second = ordered[np.minimum(starts + 1, starts + sizes - 1)]
    return (ordered[starts] + second) / 2


_AGGREGATIONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "max": np.maximum.reduceat,
    "mean": _mean,
    "top2": _mean_of_two_best,
}
