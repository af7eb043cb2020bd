"""Paragraphs become sentences; links keep their places."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import sentencex

from .markup import Link, LinkedText


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
        inside, first = links[first:after], after
        if inside:
            for start, end in _bounds(line, language, inside, position, split):
                sentence = _cut(body.text, inside, position + start, position + end)
                if not sentence.links:
                    continue
                if debris is not None and debris.search(sentence.text):
                    drops["sentence with left-over markup"] += 1
                else:
                    yield sentence
        position += len(line) + 1


def _bounds(
    line: str, language: str, links: list[Link], offset: int, split: bool
) -> list[tuple[int, int]]:
    if not split:
        return [(0, len(line))]
    found = sentencex.get_sentence_boundaries(language, line)
    bounds: list[tuple[int, int]] = []
    for start, end in ((b["start_index"], b["end_index"]) for b in found):
        cut = offset + start
        if bounds and any(link.start < cut < link.end for link in links):
            start = bounds.pop()[0]
        bounds.append((start, end))
    return bounds


def _cut(text: str, links: list[Link], start: int, end: int) -> LinkedText:
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
