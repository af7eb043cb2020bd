"""Clean text together with the exact places of its links."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Link", "LinkedText", "joined", "linked_lines"]


class Link(NamedTuple):
    """A link in a text, for which ``text[start:end] == anchor`` holds.

    Attributes:
        start: the offset of its first character.
        end: the offset behind its last character.
        anchor: its anchor text.
        target: the key of the page that it leads to.
    """

    start: int
    end: int
    anchor: str
    target: str

    def at(self, start: int, end: int) -> Link:
        """Return the same link at another place."""
        return Link(start, end, self.anchor, self.target)


@dataclass(slots=True)
class LinkedText:
    """A text and its links, in the order of the text."""

    text: str
    links: list[Link]

    def substitute(self, pattern: re.Pattern[str], replacement: str) -> None:
        """Replace every match of a pattern and move the links accordingly.

        The replacement is inserted literally. Where a link starts or ends inside a match, it then
        starts behind the replacement or ends before it, so that a link never grows.
        """
        self.replace((match.span() for match in pattern.finditer(self.text)), replacement)

    def replace(self, spans: Iterable[tuple[int, int]], replacement: str) -> None:
        """Replace the text between offsets, in order, as `substitute` does."""
        pieces: list[str] = []
        starts, ends, shifts = [-1], [0], [0]  # the first place stands before the text
        position = length = 0
        for start, end in spans:
            pieces += [self.text[position:start], replacement]
            length += start - position + len(replacement)
            position = end
            starts.append(start)
            ends.append(end)
            shifts.append(length - position)
        if not pieces:
            return

        def moved(offset: int, *, is_start: bool) -> int:
            match = bisect_right(starts, offset - 1) - 1
            if offset >= ends[match]:
                return offset + shifts[match]
            return ends[match] + shifts[match] if is_start else starts[match] + shifts[match - 1]

        self.text = "".join([*pieces, self.text[position:]])
        self.links = [
            link.at(moved(link.start, is_start=True), moved(link.end, is_start=False))
            for link in self.links
        ]

    def part(self, start: int, end: int, links: Iterable[Link] | None = None) -> LinkedText:
        """Return a part of the text with the links inside it (by default all of the text)."""
        inside = [
            link.at(link.start - start, link.end - start)
            for link in (self.links if links is None else links)
            if start <= link.start and link.end <= end
        ]
        return LinkedText(self.text[start:end], inside)

    def shrink_links(self) -> None:
        """Remove white space from both ends of every link, and remove links that become empty."""
        shrunk = []
        for link in self.links:
            words = self.text[link.start : link.end]
            start = link.start + len(words) - len(words.lstrip())
            end = link.end - len(words) + len(words.rstrip())
            if start < end:
                shrunk.append(link.at(start, end))
        self.links = shrunk

    def remove_inexact_links(self) -> None:
        """Remove the links whose words in the text differ from their anchor text."""
        self.links = [
            link for link in self.links if self.text[link.start : link.end] == link.anchor
        ]


def joined(texts: Iterable[LinkedText]) -> LinkedText:
    """Put each text on a line of its own and move its links accordingly."""
    lines: list[str] = []
    links: list[Link] = []
    position = 0
    for text in texts:
        lines.append(text.text)
        links += [link.at(link.start + position, link.end + position) for link in text.links]
        position += len(text.text) + 1
    return LinkedText("\n".join(lines), links)


def linked_lines(anchors: Iterable[tuple[str, str]]) -> LinkedText:
    """Put each anchor text on a line of its own, as a link to its target.

    Args:
        anchors: pairs of an anchor text and the key of its target.
    """
    return joined(
        LinkedText(anchor, [Link(0, len(anchor), anchor, target)]) for anchor, target in anchors
    )
