"""Long documents: overlapping windows of tokens, and one score from those of the windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ..errors import HarpError


def _max(scores: np.ndarray, starts: np.ndarray) -> np.ndarray:
    return np.maximum.reduceat(scores, starts)


def _mean(scores: np.ndarray, starts: np.ndarray) -> np.ndarray:
    return np.add.reduceat(scores, starts) / np.diff(starts, append=len(scores))


def _top2(scores: np.ndarray, starts: np.ndarray) -> np.ndarray:
    sizes = np.diff(starts, append=len(scores))
    owners = np.repeat(np.arange(len(starts)), sizes)
    ordered = scores[np.lexsort((-scores, owners))]
    second = ordered[np.minimum(starts + 1, starts + sizes - 1)]
    return (ordered[starts] + second) / 2


AGGREGATIONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "max": _max,
    "mean": _mean,
    "top2": _top2,
}
"""(windows,) float64 scores and (documents,) first windows → (documents,) scores."""


@dataclass(frozen=True)
class Passages:
    """How a document that may be longer than the model's input is scored.

    Args:
        name: ``first``: its first window. ``max``, ``mean``: the best or the mean of the scores of
            its windows. ``top2``: the mean of the two best (of the one, where there is one).
        length: tokens of a window; None for as many as fit beside the query. No window is longer
            than that.
        stride: tokens from one window's start to the next one's; None for half a window.

    Raises:
        HarpError: an argument has no sense.
    """

    name: str = "first"
    length: int | None = None
    stride: int | None = None

    def __post_init__(self) -> None:
        known = ["first", *AGGREGATIONS]
        if self.name not in known:
            raise HarpError(f"unknown passages {self.name!r}: choose one of {', '.join(known)}")
        for argument, value in (("length", self.length), ("stride", self.stride)):
            if value is not None and value < 1:
                raise HarpError(f"passage_{argument} is {value}: it must be at least 1")
        if self.length and self.stride and self.stride > self.length:
            raise HarpError(
                f"passage_stride {self.stride} is over passage_length {self.length}: tokens"
                " between windows would never be read"
            )

    @property
    def whole_input(self) -> bool:
        """Whether a document is simply cut where the model's input ends."""
        return self.name == "first" and self.length is None

    def windows(self, tokens: int, room: int) -> Iterator[slice]:
        """The windows of a document: all of them full, but for the last, which ends with it.

        Args:
            tokens: of the document.
            room: tokens that fit beside the query.
        """
        length = max(min(self.length or room, room), 1)
        stride = min(self.stride or max(length // 2, 1), length)
        last = 0 if self.name == "first" else max(tokens - length, 0)
        for start in range(0, last + stride, stride):
            yield slice(start, start + length)

    def aggregate(self, scores: np.ndarray, starts: np.ndarray) -> np.ndarray:
        """(windows,) scores and (documents,) the first window of each → (documents,) scores."""
        if self.name == "first":
            return scores[starts]
        return AGGREGATIONS[self.name](scores.astype(np.float64), starts)
