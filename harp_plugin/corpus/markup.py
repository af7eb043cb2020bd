"""Clean text that knows where its links are."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


class Link(NamedTuple):
    """A link in a text: ``text[start:end] == anchor``; ``target`` is a page's normalised title."""

    start: int
    end: int
    anchor: str
    target: str


@dataclass(slots=True)
class LinkedText:
    """A text and the links in it, in order."""

    text: str
    links: list[Link]

    def substitute(self, pattern: re.Pattern[str], replacement: str) -> None:
        """Replace every match of ``pattern`` by this very text; the links keep to their words.

        A link boundary strictly inside a replaced stretch moves to the stretch's far side, so that
        the link never grows.
        """
        pieces: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        shifts: list[int] = []
        position = length = 0
        for match in pattern.finditer(self.text):
            start, end = match.span()
            pieces += [self.text[position:start], replacement]
            length += start - position + len(replacement)
            position = end
            starts.append(start)
            ends.append(end)
            shifts.append(length - position)
        if not starts:
            return

        def moved(offset: int, *, is_start: bool) -> int:
            stretch = bisect_right(starts, offset - 1) - 1
            if stretch < 0:
                return offset
            if offset < ends[stretch]:
                before = shifts[stretch - 1] if stretch else 0
                return ends[stretch] + shifts[stretch] if is_start else starts[stretch] + before
            return offset + shifts[stretch]

        self.text = "".join([*pieces, self.text[position:]])
        self.links = [
            Link(
                moved(link.start, is_start=True),
                moved(link.end, is_start=False),
                link.anchor,
                link.target,
            )
            for link in self.links
        ]

    def strip(self) -> None:
        """Take white space off both ends of the text."""
        stripped = self.text.lstrip()
        shift = len(self.text) - len(stripped)
        self.text = stripped.rstrip()
        size = len(self.text)
        self.links = [
            Link(
                min(max(link.start - shift, 0), size),
                min(max(link.end - shift, 0), size),
                link.anchor,
                link.target,
            )
            for link in self.links
        ]

    def shrink_links(self) -> None:
        """Take white space out of both ends of every link; drop links that are left empty."""
        shrunk = []
        for link in self.links:
            words = self.text[link.start : link.end]
            start = link.start + len(words) - len(words.lstrip())
            end = link.end - len(words) + len(words.rstrip())
            if start < end:
                shrunk.append(Link(start, end, link.anchor, link.target))
        self.links = shrunk


def joined(texts: Iterable[LinkedText]) -> LinkedText:
    """Put each text on a line of its own; the links keep to their words."""
    lines: list[str] = []
    links: list[Link] = []
    position = 0
    for text in texts:
        lines.append(text.text)
        links += [
            Link(link.start + position, link.end + position, link.anchor, link.target)
            for link in text.links
        ]
        position += len(text.text) + 1
    return LinkedText("\n".join(lines), links)
