"""Paragraphs become sentences; links keep their places."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Iterator

import sentencex

from .markup import Link, LinkedText

_LONGEST = 8192


def linked_sentences(
    body: LinkedText,
    language: str,
    drops: Counter[str],
    *,
    split: bool = True,
    debris: re.Pattern[str] | None = None,
) -> Iterator[LinkedText]:
    """Give the sentences of a text that hold a link, in order.

    Sentences that a link crosses are joined.

    Args:
        body: lines are paragraphs.
        language: code for the sentence splitter.
        drops: counter of reasons.
        split: false where every line is one sentence already.
        debris: matches left-over markup, of which no sentence may have any: it is dropped and
            counted in ``drops``.
    """
    links = sorted(body.links, key=lambda link: (link.start, link.end))
    position = first = 0
    for line in body.text.split("\n"):
        after = first
        while after < len(links) and links[after].start < position + len(line):
            after += 1
        inside, first = deque(links[first:after]), after
        if inside:
            for start, end in _bounds(line, language, inside, position, split):
                found = []
                while inside and inside[0].start < position + end:
                    found.append(inside.popleft())
                sentence = _cut(body.text, found, position + start, position + end)
                if not sentence.links:
                    continue
                if debris is not None and debris.search(sentence.text):
                    drops["sentence with left-over markup"] += 1
                else:
                    yield sentence
        position += len(line) + 1


def _bounds(
    line: str, language: str, links: Iterable[Link], offset: int, split: bool
) -> list[tuple[int, int]]:
    if not split:
        return [(0, len(line))]
    starts: list[int] = []
    ends: list[int] = []
    for link in links:
        if not ends or link.end - offset > ends[-1]:
            starts.append(link.start - offset)
            ends.append(link.end - offset)
    bounds: list[tuple[int, int]] = []
    for start, end in _split(line, language):
        crossed = bisect_left(starts, start) - 1
        if bounds and crossed >= 0 and start < ends[crossed]:
            start = bounds.pop()[0]
        bounds.append((start, end))
    return bounds


def split_sentences(text: str, language: str | None) -> list[str]:
    """The sentences of a text, in order.

    Args:
        text: lines are paragraphs.
        language: code for the sentence splitter; None where every line is one sentence already.
    """
    found = (
        line[start:end].strip()
        for line in text.split("\n")
        for start, end in ([(0, len(line))] if language is None else _split(line, language))
    )
    return [sentence for sentence in found if sentence]


def _split(line: str, language: str) -> Iterator[tuple[int, int]]:
    """Boundaries of sentences, of which none is over 8192 characters.

    The splitter's time grows with the square of what it is given; so a long line is given to it
    in pieces, each from the start of the last sentence before.
    """
    position = 0
    while position < len(line):
        piece = line[position : position + _LONGEST]
        found = sentencex.get_sentence_boundaries(language, piece)
        is_whole = len(found) < 2 or position + len(piece) == len(line)
        for bound in found if is_whole else found[:-1]:
            yield position + bound["start_index"], position + bound["end_index"]
        position += len(piece) if is_whole else found[-1]["start_index"]


def _cut(text: str, links: Iterable[Link], start: int, end: int) -> LinkedText:
    sentence = text[start:end]
    start += len(sentence) - len(sentence.lstrip())
    sentence = sentence.strip()
    end = start + len(sentence)
    return LinkedText(
        sentence,
        [
            Link(link.start - start, link.end - start, link.anchor, link.target)
            for link in links
            if start <= link.start and link.end <= end
        ],
    )
