"""From a text with weighed words to a distribution over terms to the words of a pseudo query."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..errors import HarpError
from ..sampling import linear, softmax
from ..text import WORD
from .options import DrawOptions

__all__ = [
    "Terms",
    "WeighedText",
    "distribution",
    "merge_repeats",
    "stop_words",
    "stop_words_hash",
    "without",
]


@dataclass(frozen=True, slots=True, eq=False)
class WeighedText:
    """A text, the offsets of its words, and the words' weights, which belong to no other text.

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
    spans: np.ndarray = field(default_factory=lambda: np.empty((0, 2), np.int64))
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
        """
        return WeighedText(text, self.spans + start, self.weights)


class Terms(NamedTuple):
    """Distinct lower-cased terms of a text with their summed weights β (HARP, eq. 2).

    Attributes:
        words: the terms.
        weights: β of each, float64 of shape (terms,).
        written: each as it is first written in the text.
    """

    words: list[str]
    weights: np.ndarray
    written: list[str]


_LIST = files("harp_plugin") / "data" / "stop-words.txt"
_MORE_STOP_WORDS = frozenset(_LIST.read_text("utf-8").split())
"""Words without a topic that scikit-learn's list lacks, of those that are drawn most."""


def stop_words(name: str) -> frozenset[str]:
    """Return a stop list by its name.

    Args:
        name: ``scikit-learn``; ``english``, which has some more words; ``none``; or a file with one
            word on each line, such as the paper's INQUERY list, which is not in this package.

    Raises:
        HarpError: there is no such file.
    """
    if name == "none":
        return frozenset()
    if name in ("english", "scikit-learn"):
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        more = _MORE_STOP_WORDS if name == "english" else frozenset()
        return ENGLISH_STOP_WORDS | more
    try:
        status = Path(name).stat()
        return _words_in(name, status.st_size, status.st_mtime_ns)
    except (OSError, ValueError) as error:
        raise HarpError(
            f"stop list {name} cannot be read ({error}): write it, one word on each line, or take "
            "--stop-words english, which is in the package"
        ) from error


def stop_words_hash(name: str) -> str:
    """Return a hash of the words of a stop list, which is named as in `stop_words`.

    Raises:
        HarpError: there is no such file.
    """
    return hashlib.sha256("\n".join(sorted(stop_words(name))).encode()).hexdigest()


@lru_cache(maxsize=8)
def _words_in(path: str, size: int, modified: int) -> frozenset[str]:
    """Read the words of a file; it is read again when its size or its time changes."""
    return frozenset(Path(path).read_text("utf-8").lower().split())


def merge_repeats(words: list[str], weights: np.ndarray, stopped: frozenset[str]) -> Terms:
    """Sum the weights of equal words, lower-cased (HARP, eq. 2).

    Stop words and pieces without a letter or digit are left out.
    """
    merged: dict[str, float] = {}
    written: dict[str, str] = {}
    for as_written, weight in zip(words, weights.tolist(), strict=True):
        word = as_written.lower()
        if word not in stopped and WORD.search(word):
            merged[word] = merged.get(word, 0.0) + weight
            written.setdefault(word, as_written)
    sums = np.array(list(merged.values()), dtype=np.float64)
    return Terms(list(merged), sums, list(written.values()))


def without(terms: Terms, anchor_words: list[str], how: str | None) -> Terms:
    """Take an anchor's words out of the terms of a page (HARP, eq. 5) or of a sentence.

    Args:
        terms: the terms of the text.
        anchor_words: the words of the anchor.
        how: ``removed`` takes them out before the softmax; ``zero_weight`` sets their weights to 0,
            which leaves exp(0) in the softmax; ``kept`` changes nothing.
    """
    if how == "kept":
        return terms
    anchor = {word.lower() for word in anchor_words}
    inside = np.array([word in anchor for word in terms.words], dtype=bool)
    if how == "zero_weight":
        return terms._replace(weights=np.where(inside, 0.0, terms.weights))
    words, written = (
        [word for word, drop in zip(both, inside, strict=True) if not drop]
        for both in (terms.words, terms.written)
    )
    return Terms(words, terms.weights[~inside], written)


def distribution(weights: np.ndarray, options: DrawOptions, heads: int) -> np.ndarray:
    """Normalize weights to a distribution (HARP, eq. 3 and 11)."""
    if options.normalization == "linear":
        return linear(weights)
    return softmax(weights, options.temperature_for(heads))
