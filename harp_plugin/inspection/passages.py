"""A text in pieces that a page can color: words with their weight, in or out of an anchor."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from ..tasks.terms import WeighedText
from ..text import WORD

__all__ = ["LEVELS", "Mention", "Passage", "Piece", "Run", "cut", "passage"]

LEVELS = 9
"""Steps of shading, from 1 to the heaviest word that can be drawn."""

_CUT = 400
_LONG_WORD = 60


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of characters that are shown alike.

    Attributes:
        text: the characters.
        level: shading, from 0 (none) to `LEVELS`.
        weight: of the word it belongs to; None where there is none.
        stopped: it is a stop word, which is never drawn.
        marked: it is a word of the query.
    """

    text: str
    level: int = 0
    weight: float | None = None
    stopped: bool = False
    marked: bool = False

    @property
    def style(self) -> str:
        """Its CSS classes."""
        level = f"w{self.level}" if self.level else ""
        return " ".join(
            filter(None, (level, "stop" if self.stopped else "", "mark" if self.marked else ""))
        )


@dataclass(frozen=True, slots=True)
class Mention:
    """An anchor as it is shown.

    Attributes:
        start: its first character.
        end: the character after its last.
        title: of the page it leads to.
        role: ``focus`` (it is in the query), ``positive`` or ``negative`` (it leads to that
            member's page), or empty.
        note: more on it, such as its weight.
    """

    start: int
    end: int
    title: str
    role: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """Pieces that stand in the same anchor, or in none."""

    pieces: tuple[Piece, ...]
    mention: Mention | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """A text to be shown.

    Attributes:
        runs: in reading order; their texts joined are the text up to where it is cut.
        weighed: whether any word has a weight.
        cut: whether the text goes on.
        beyond: words of the query that come after the cut.
    """

    runs: tuple[Run, ...]
    weighed: bool
    cut: bool = False
    beyond: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What is shown, without mark-up."""
        return "".join(piece.text for run in self.runs for piece in run.pieces)


def passage(
    weighed: WeighedText,
    *,
    stopped: Collection[str],
    marked: Collection[str] = (),
    mentions: Sequence[Mention] = (),
    limit: int | None = None,
) -> Passage:
    """Cut a text into pieces.

    Args:
        weighed: the whole text, with the weights of its words, if they have any.
        stopped: stop words.
        marked: lower-cased words of the query; stop words among them are not marked.
        mentions: anchors in it.
        limit: characters after which it is cut, at the end of a word; None for the whole.
    """
    text, words = weighed.text, _words(weighed)
    scale = max((w for s, e, w in words if w and text[s:e].lower() not in stopped), default=0.0)
    end = _end(text, limit)
    pieces: list[tuple[Mention | None, Piece]] = []
    edges = {0, end, *(edge for s, e, _ in words for edge in (s, e))}
    edges |= {edge for mention in mentions for edge in (mention.start, mention.end)}
    place = 0
    for start, stop in pairwise(sorted(edge for edge in edges if edge <= end)):
        while place < len(words) and words[place][1] <= start:
            place += 1
        piece = Piece(text[start:stop])
        if place < len(words) and words[place][0] <= start:
            word = text[words[place][0] : words[place][1]].lower()
            piece = _piece(piece.text, word, words[place][2], scale, stopped, marked)
        inside = (m for m in mentions if m.start <= start and stop <= m.end)
        pieces.append((next(inside, None), piece))
    runs = (
        Run(tuple(piece for _, piece in group), mention)
        for mention, group in groupby(pieces, key=lambda pair: pair[0])
    )
    seen = {text[s:e].lower() for s, e, _ in words if e <= end}
    later = (text[s:e] for s, e, _ in words if e > end)
    beyond = {w.lower(): w for w in later if w.lower() in marked and w.lower() not in stopped}
    return Passage(
        tuple(runs),
        weighed=scale > 0,
        cut=end < len(text),
        beyond=tuple(word for key, word in beyond.items() if key not in seen),
    )


def _words(weighed: WeighedText) -> list[tuple[int, int, float | None]]:
    """List the words in reading order: those with a weight, and those before and after them."""
    spans: list[tuple[int, int]] = [(start, end) for start, end in weighed.spans.tolist()]
    first, last = (spans[0][0], spans[-1][1]) if spans else (0, 0)
    return [
        *((*match.span(), None) for match in WORD.finditer(weighed.text, 0, first)),
        *((*span, weight) for span, weight in zip(spans, weighed.weights.tolist(), strict=True)),
        *((*match.span(), None) for match in WORD.finditer(weighed.text, last)),
    ]


def _piece(
    text: str,
    word: str,
    weight: float | None,
    scale: float,
    stopped: Collection[str],
    marked: Collection[str],
) -> Piece:
    if word in stopped:
        return Piece(text, 0, weight, True, False)
    share = weight / scale if weight and scale else 0.0
    return Piece(text, round(LEVELS * min(1.0, share)), weight, False, word in marked)


def _end(text: str, limit: int | None) -> int:
    if limit is None or len(text) <= limit:
        return len(text)
    last = limit
    for match in WORD.finditer(text):
        if match.start() >= limit:
            break
        last = match.end()
    return last if last < limit + _LONG_WORD else limit


def cut(weighed: WeighedText, *, stopped: Collection[str], marked: Collection[str] = ()) -> Passage:
    """Make a document's `passage`, which is cut after about 400 characters."""
    return passage(weighed, stopped=stopped, marked=marked, limit=_CUT)
