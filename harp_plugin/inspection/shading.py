"""A text as HTML: words shaded by their weight, stop words, words of the query, and anchors."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain, groupby, pairwise
from typing import NamedTuple

from markupsafe import Markup, escape

from ..tasks.terms import WeighedText
from ..text import WORD

__all__ = ["LEVELS", "Mention", "shaded"]

LEVELS = 9
"""Steps of shading, from 1 to the heaviest word that can be drawn."""

_LONG_WORD = 60


class Mention(NamedTuple):
    """An anchor as it is shown.

    Attributes:
        start: its first character.
        end: the character after its last.
        title: of the page it leads to.
        role: ``focus`` (it is in the query), ``positive`` or ``negative`` (it leads to that
            member's page), or ``link``.
        note: more on it, such as its weight.
    """

    start: int
    end: int
    title: str
    role: str = "link"
    note: str = ""


_Word = tuple[int, int, str, float | None]
"""Where a word starts and ends, the word in lower case, and its weight, if it has one."""


def shaded(
    weighed: WeighedText,
    *,
    stopped: Collection[str],
    marked: Collection[str] = (),
    mentions: Sequence[Mention] = (),
    limit: int | None = None,
) -> Markup:
    """Write a text as HTML, in which every text is escaped.

    Args:
        weighed: the whole text, with the weights of its words, if they have any.
        stopped: lower-cased stop words, which are never drawn.
        marked: lower-cased words of the query; stop words among them are not marked.
        mentions: anchors in it.
        limit: characters after which it is cut, at the end of a word; None for the whole. Words of
            the query that come only after the cut are named behind it.
    """
    text, words, end = weighed.text, _words(weighed), _end(weighed.text, limit)
    heaviest = max((w or 0.0 for _, _, lowered, w in words if lowered not in stopped), default=0.0)

    def piece(start: int, stop: int) -> Markup:
        word = next((word for word in words if word[0] <= start < word[1]), None)
        if word is None:
            return escape(text[start:stop])
        _, _, lowered, weight = word
        style = _style(lowered, (weight or 0.0) / (heaviest or 1.0), stopped, marked)
        title = "" if weight is None else Markup(' title="{:.4f}"').format(weight)
        return Markup('<i class="{}"{}>{}</i>').format(style, title, text[start:stop])

    def mention(piece: tuple[int, int]) -> Mention | None:
        return next((m for m in mentions if m.start <= piece[0] < m.end), None)

    edges = [0, end, *chain.from_iterable(word[:2] for word in words)]
    edges += chain.from_iterable((each.start, each.end) for each in mentions)
    runs = groupby(pairwise(sorted({min(edge, end) for edge in edges})), key=mention)
    shown = "".join(_run(anchor, "".join(piece(*edge) for edge in run)) for anchor, run in runs)
    asked = {*marked} - {*stopped} - {lowered for _, stop, lowered, _ in words if stop <= end}
    later = dict.fromkeys(lowered for _, _, lowered, _ in words if lowered in asked)
    beyond = "".join(f' <i class="mark">{escape(word)}</i> …' for word in later)
    return Markup(f'<span class="shown">{shown}</span>' + f" …{beyond}" * (end < len(text)))


def _words(weighed: WeighedText) -> list[_Word]:
    """List the words in reading order: those with a weight, and those before and after them."""
    text = weighed.text
    spans: list[tuple[int, int]] = [(start, end) for start, end in weighed.spans.tolist()]
    first, last = (spans[0][0], spans[-1][1]) if spans else (0, 0)
    outside = (*WORD.finditer(text, 0, first), *WORD.finditer(text, last))
    weights: dict[tuple[int, int], float | None] = {match.span(): None for match in outside}
    weights |= zip(spans, weighed.weights.tolist(), strict=True)
    return [(*span, text[slice(*span)].lower(), weights[span]) for span in sorted(weights)]


def _style(word: str, weight: float, stopped: Collection[str], marked: Collection[str]) -> str:
    if word in stopped:
        return "stop"
    level = round(LEVELS * min(1.0, weight))
    return " ".join([f"w{level}"] * bool(level) + ["mark"] * (word in marked))


def _run(anchor: Mention | None, content: str) -> str:
    if anchor is None:
        return content
    return Markup('<span class="anchor {}" title="{}">{}<small>{}</small></span>').format(
        anchor.role, anchor.note, Markup(content), anchor.title
    )


def _end(text: str, limit: int | None) -> int:
    """Return where a text is cut: at the last space before the limit, unless that is far away."""
    if limit is None or len(text) <= limit:
        return len(text)
    space = text.rfind(" ", limit - _LONG_WORD, limit + 1)
    return limit if space < 0 else space
