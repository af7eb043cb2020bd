"""The part of a long text that a query asks for: its beginning and its best passage."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import chain

from .text import WORD

__all__ = ["BEGINNING_WORDS", "PASSAGE_WORDS", "query_passage"]

BEGINNING_WORDS = 16
"""How many words of the beginning are kept: the title of a document stands there."""
PASSAGE_WORDS = 48
"""How many words the passage has."""
_PREFIX = 5


def query_passage(query: str, text: str) -> str:
    """Return the beginning of a text and the passage in it that shares most words with a query.

    Passages are windows of words that overlap by half. A word of the query adds
    tf / (tf + 1) · ln(1 + n / df) to the score of a window in which it stands tf times, where df of
    the text's n windows have it. So no statistics of a collection are needed, and training and
    ranking, which see different collections, read the same passages. Two words are equal if their
    first five letters are, in any case, which stems words in any language (Can et al., JASIST 2008,
    "F5").

    Args:
        query: the query.
        text: the text, which begins with its title.

    Returns:
        The first 16 words and, behind a line break, the best window of 48 words, the first of
        several; the whole text where it has no more than 64 words.
    """
    matches = list(WORD.finditer(text))
    if len(matches) <= BEGINNING_WORDS + PASSAGE_WORDS:
        return text
    stride = PASSAGE_WORDS // 2
    starts = range(BEGINNING_WORDS, len(matches) - PASSAGE_WORDS + stride, stride)
    wanted = set(map(_stem, WORD.findall(query)))
    windows: list[Counter[str]] = [Counter() for _ in starts]
    for place, match in enumerate(matches[BEGINNING_WORDS:]):
        if (stem := _stem(match[0])) in wanted:
            last = place // stride
            for window in windows[max(last - 1, 0) : last + 1]:
                window[stem] += 1
    first = starts[_best(windows)]
    last = min(first + PASSAGE_WORDS, len(matches)) - 1
    beginning = text[: matches[BEGINNING_WORDS - 1].end()]
    return f"{beginning}\n{text[matches[first].start() : matches[last].end()]}"


def _stem(word: str) -> str:
    return word[:_PREFIX].lower()


def _best(windows: Sequence[Counter[str]]) -> int:
    """Return the place of the window with the highest score, from the words it has of a query."""
    having = Counter(chain.from_iterable(windows))
    weights = {stem: math.log1p(len(windows) / count) for stem, count in having.items()}
    scores = [
        sum(weights[stem] * count / (count + 1) for stem, count in window.items())
        for window in windows
    ]
    return scores.index(max(scores))
