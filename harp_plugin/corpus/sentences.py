"""Splits paragraphs into sentences; links keep their places."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate

import sentencex

from .markup import Link, LinkedText

__all__ = ["linked_sentences", "remove_sentences", "split_sentences"]

_LONGEST = 8192


def linked_sentences(
    body: LinkedText,
    language: str | None,
    drops: Counter[str],
    debris: re.Pattern[str] | None = None,
) -> Iterator[LinkedText]:
    """Give the sentences of a text that hold a link, in order.

    Where a link crosses the end of a sentence, the two sentences are joined.

    Args:
        body: the text, in which each line is a paragraph.
        language: the language code for the sentence splitter; None where each line is one sentence
            already.
        drops: the counter of reasons.
        debris: a pattern for left-over markup. A sentence that holds it is dropped and counted.
    """
    links = sorted(body.links, key=lambda link: (link.start, link.end))
    starts = [link.start for link in links]
    position = 0
    for line in body.text.split("\n"):
        first, last = (bisect_left(starts, place) for place in (position, position + len(line)))
        bounds = _bounds(line, language, links[first:last], position) if first < last else ()
        for start, end in bounds:
            behind = bisect_left(starts, position + end)
            text = line[start:end]
            first_letter = position + start + len(text) - len(text.lstrip())
            sentence = body.part(
                first_letter, first_letter + len(text.strip()), links[first:behind]
            )
            first = behind
            if debris is not None and sentence.links and debris.search(sentence.text):
                drops["sentence with left-over markup"] += 1
            elif sentence.links:
                yield sentence
        position += len(line) + 1


def _bounds(
    line: str, language: str | None, links: Sequence[Link], offset: int
) -> list[tuple[int, int]]:
    """Return the bounds of the sentences of a line, joined where a link crosses their ends.

    Args:
        line: a line of a text.
        language: as for `linked_sentences`.
        links: the links of the line, at their places in the text.
        offset: the place of the line in the text.
    """
    starts = [link.start - offset for link in links]
    ends = list(accumulate((link.end - offset for link in links), max))
    bounds: list[tuple[int, int]] = []
    for start, end in _sentence_bounds(line, language):
        before = bisect_left(starts, start)
        if bounds and before and start < ends[before - 1]:
            start = bounds.pop()[0]
        bounds.append((start, end))
    return bounds


def split_sentences(text: str, language: str | None) -> list[str]:
    """Return the sentences of a text, in order.

    Args:
        text: the text, in which each line is a paragraph.
        language: the language code for the sentence splitter; None where each line is one sentence
            already.
    """
    sentences = (
        line[start:end].strip()
        for line in text.split("\n")
        for start, end in _sentence_bounds(line, language)
    )
    return [sentence for sentence in sentences if sentence]


def remove_sentences(body: LinkedText, mark: str, language: str) -> int:
    """Remove the sentences that hold a mark, with their links, and return their number."""
    spans: list[tuple[int, int]] = []
    position = 0
    for line in body.text.split("\n"):
        bounds = _sentence_bounds(line, language) if mark in line else ()
        spans += [(position + a, position + b) for a, b in bounds if mark in line[a:b]]
        position += len(line) + 1
    body.replace(spans, "")
    return len(spans)


def _sentence_bounds(line: str, language: str | None) -> Iterator[tuple[int, int]]:
    """Give the bounds of the sentences of a line; none is longer than 8192 characters.

    The time of the splitter grows with the square of the length of its input. A long line is
    therefore split in pieces, each of which starts at the last sentence of the piece before.
    """
    if language is None:
        yield 0, len(line)
        return
    position = 0
    while position < len(line):
        piece = line[position : position + _LONGEST]
        bounds = sentencex.get_sentence_boundaries(language, piece)
        is_whole = len(bounds) < 2 or position + len(piece) == len(line)
        for bound in bounds if is_whole else bounds[:-1]:
            yield position + bound["start_index"], position + bound["end_index"]
        position += len(piece) if is_whole else bounds[-1]["start_index"]
