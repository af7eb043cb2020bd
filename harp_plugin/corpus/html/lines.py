"""Writes one line of text after the other, with the exact places of its links."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ...text import words
from ..markup import Link, LinkedText
from ..pages import Dropped

__all__ = ["LineWriter", "WordCount"]

_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u2060\ufeff\x00-\x08\x0e-\x1f\x7f]")
_MIN_LINKS, _LINKED_SHARE = 3, 2 / 3
_MANY_LINKS, _WORDS_PER_LINK = 10, 6


class WordCount(NamedTuple):
    """The size of a line or of a list.

    Attributes:
        words: the number of words.
        linked: the number of words inside links.
        links: the number of links.
    """

    words: int
    linked: int
    links: int

    @property
    def is_menu(self) -> bool:
        """True if it consists of links only, or of so many links that it is not prose.

        The latter holds for three links or more with two thirds of the words, and for ten links or
        more that have half of the words, or at most six words of the line for each link.
        """
        most_words = max(_WORDS_PER_LINK * self.links, 2 * self.linked)
        is_list = self.links >= _MANY_LINKS and self.words <= most_words
        is_linked = self.links >= _MIN_LINKS and self.linked >= _LINKED_SHARE * self.words
        return self.links > 0 and (self.linked >= self.words or is_list or is_linked)


@dataclass(slots=True)
class _OpenLink:
    """A link that is being written.

    Attributes:
        target: the key of its page, or why it has none.
        start: the offset of its first character in the line.
        piece: the number of its first piece.
        ended: whether its anchor is complete, because a line ended inside the link.
    """

    target: str | Dropped
    start: int
    piece: int
    ended: bool = False


class LineWriter:
    """Writes text as a browser shows it: with single spaces, and none at the ends of a line.

    A link that crosses the end of a line ends there. A link is dropped and counted if it shows no
    text, names no page, or has an anchor text that says nothing about its page. A single sign, such
    as §, that is the text of a dropped link is removed.

    Args:
        drops: the counter of reasons.
        drop_reason: says why a link is dropped, by its anchor text and target; None to keep it.
    """

    def __init__(self, drops: Counter[str], drop_reason: Callable[[str, str], str | None]) -> None:
        self.drops = drops
        self.drop_reason = drop_reason
        self._pieces: list[str] = []
        self._links: list[Link] = []
        self._length = 0
        self._space = False
        self._linked_words = self._all_links = 0
        self._open: _OpenLink | None = None

    @property
    def is_empty(self) -> bool:
        """True if the current line holds no text yet."""
        return not self._length

    def write(self, text: str) -> None:
        """Write the text of one node of the tree."""
        text = _INVISIBLE.sub("", text)
        parts = text.split()
        if not parts:
            self._space = self._space or bool(text)
            return
        piece = " ".join(parts)
        if self._length and (self._space or text[0].isspace()):
            piece = f" {piece}"
        self._pieces.append(piece)
        self._length += len(piece)
        self._space = text[-1].isspace()

    def space(self, *, needed: bool = True) -> None:
        """Separate what stands before from what follows, or join them, where both hold text."""
        self._space = needed

    def open_link(self, target: str | Dropped) -> bool:
        """Start a link.

        Returns:
            True if it was started; a link inside another link is counted as dropped.
        """
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
        """End the line and return it with its size; None where it is empty, or a separator (·)."""
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
        return line if text.strip("·") or line[0].links else None

    def _end_anchor(self) -> None:
        link = self._open
        if link is None or link.ended or self._length == link.start:
            return
        link.ended = True
        shown = "".join(self._pieces[link.piece :])
        anchor = shown.lstrip()
        number = len(words(anchor))
        self._all_links += 1
        self._linked_words += number
        if isinstance(link.target, Dropped):
            self.drops[link.target.reason] += 1
        elif (reason := self.drop_reason(anchor, link.target)) is not None:
            self.drops[reason] += 1
        else:
            start = link.start + len(shown) - len(anchor)
            self._links.append(Link(start, self._length, anchor, link.target))
            return
        if len(anchor.rstrip("\ufe0e\ufe0f")) == 1 and not number:
            del self._pieces[link.piece :]
            self._length = link.start
            self._space = self._space or anchor != shown
