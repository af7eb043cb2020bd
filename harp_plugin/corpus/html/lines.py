"""Writes one line of text at a time, with the exact places of its links."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ...text import words
from ..markup import Link, LinkedText
from ..pages import Dropped

_UNSEEN = re.compile("[\u00ad\u200b\u200e\u200f\u2060\ufeff\x00-\x08\x0e-\x1f\x7f]")
_FEWEST_LINKS, _LINKED_SHARE = 3, 2 / 3
_MANY_LINKS, _WORDS_A_LINK = 10, 6
Judge = Callable[[str, str], str | None]
"""Why an anchor text says nothing of the page with this key, if it does not."""


class WordCount(NamedTuple):
    """Words of a line or a list, how many of them are linked, and links."""

    words: int
    linked: int
    links: int

    @property
    def is_menu(self) -> bool:
        """Whether it is links only, or so many that it is no prose.

        The latter are three links with two thirds of the words, or ten links with half of them, or
        with six words each, their own among them.
        """
        if not self.links:
            return False
        if self.linked >= self.words:
            return True
        most = max(_WORDS_A_LINK * self.links, 2 * self.linked)
        if self.links >= _MANY_LINKS and self.words <= most:
            return True
        return self.links >= _FEWEST_LINKS and self.linked >= _LINKED_SHARE * self.words


@dataclass(slots=True)
class _OpenLink:
    target: str | Dropped
    start: int
    piece: int
    ended: bool = False


class LineWriter:
    """Writes text as a browser shows it: white space folded, none at the ends of a line.

    A link that goes on over the end of a line ends there; one that shows no text is dropped and
    counted, as are one without a page and one whose text says nothing of its page. A sign
    such as § that is the text of a dropped link is taken out.
    """

    def __init__(self, drops: Counter[str], judge: Judge) -> None:
        self.drops = drops
        self.judge = judge
        self._pieces: list[str] = []
        self._links: list[Link] = []
        self._length = 0
        self._space = False
        self._linked_words = self._all_links = 0
        self._open: _OpenLink | None = None

    def write(self, text: str) -> None:
        """Write text of one node of the tree."""
        text = _UNSEEN.sub("", text)
        found = text.split()
        if not found:
            self._space = self._space or bool(text)
            return
        piece = " ".join(found)
        if self._length and (self._space or text[0].isspace()):
            piece = f" {piece}"
        self._pieces.append(piece)
        self._length += len(piece)
        self._space = text[-1].isspace()

    def space(self) -> None:
        """Part the words before and after, where there are both."""
        self._space = True

    def open_link(self, target: str | Dropped) -> bool:
        """Start a link; False, and counted, inside of another."""
        if self._open is not None:
            self.drops["link inside a link"] += 1
            return False
        self._open = _OpenLink(target, self._length, len(self._pieces))
        return True

    def close_link(self) -> None:
        """End the link."""
        self._end_anchor()
        link, self._open = self._open, None
        if link is not None and not link.ended:
            reason = link.target.reason if isinstance(link.target, Dropped) else None
            self.drops[reason or "empty anchor text"] += 1

    def end(self) -> tuple[LinkedText, WordCount] | None:
        """End the line; None where nothing was written."""
        if not self._length:
            self._space = False
            return None
        self._end_anchor()
        text = "".join(self._pieces)
        number = len(words(text)) if self._all_links else text.count(" ") + 1
        line = LinkedText(text, self._links), WordCount(number, self._linked_words, self._all_links)
        if self._open is not None:
            self._open.start = self._open.piece = 0
        self._pieces, self._links, self._length, self._space = [], [], 0, False
        self._linked_words = self._all_links = 0
        return line if text else None

    def _end_anchor(self) -> None:
        link = self._open
        if link is None or link.ended or self._length == link.start:
            return
        link.ended = True
        written = "".join(self._pieces[link.piece :])
        anchor = written.lstrip()
        number = len(words(anchor))
        self._all_links += 1
        self._linked_words += number
        if isinstance(link.target, Dropped):
            self.drops[link.target.reason] += 1
        elif (reason := self.judge(anchor, link.target)) is not None:
            self.drops[reason] += 1
        else:
            start = link.start + len(written) - len(anchor)
            self._links.append(Link(start, self._length, anchor, link.target))
            return
        if len(anchor) == 1 and not number:
            del self._pieces[link.piece :]
            self._length = link.start
            self._space = self._space or anchor != written
