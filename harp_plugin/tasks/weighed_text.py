"""A text with the weights of its words."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

__all__ = ["WeighedText"]


def _no_spans() -> np.ndarray:
    return np.empty((0, 2), dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class WeighedText:
    """A text, the places of its words, and the words' weights, which belong to no other text.

    Attributes:
        text: the whole text.
        spans: character offsets of the words in reading order, int64 of shape (words, 2). Words
            beyond the model's limit have none.
        weights: of these words, float64 of shape (words,).

    Raises:
        ValueError: a span does not lie in the text or comes before the span in front of it, or
            there are more weights than spans or fewer.
    """

    text: str
    spans: np.ndarray = field(default_factory=_no_spans)
    weights: np.ndarray = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        if len(self.spans) != len(self.weights):
            raise ValueError(f"{len(self.weights)} weights for {len(self.spans)} words")
        offsets = self.spans.ravel()
        if len(offsets) and (offsets[0] < 0 or offsets[-1] > len(self.text)):
            raise ValueError(f"a word lies beyond the {len(self.text)} characters of the text")
        if (offsets[1:] < offsets[:-1]).any():
            raise ValueError("the words are not in reading order")

    @property
    def words(self) -> list[str]:
        """The words that have a weight, as they stand in the text."""
        return [self.text[start:end] for start, end in self.spans.tolist()]

    def within(self, text: str, start: int) -> WeighedText:
        """Give a longer text the weights of this one, which stands in it.

        Args:
            text: the longer text.
            start: offset in the longer text at which this text starts.

        Raises:
            ValueError: this text does not stand there.
        """
        if not text.startswith(self.text, start):
            raise ValueError(f"the weighed text does not stand at character {start}")
        return WeighedText(text, self.spans + start, self.weights)
