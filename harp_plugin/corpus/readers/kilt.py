"""KILT's snapshot of Wikipedia (2019/08/01): ``kilt_knowledgesource.json``, or from ir_datasets.

An article is a list of paragraphs. The first is its title, ``Section::::History.:Origins.`` is a
section's path of titles, ``BULLET::::-`` starts an item of a list. An anchor names its paragraph,
its characters in it, and its target as a quoted title; the letters that trail it are outside of
it, and are taken in here, as MediaWiki does. Redirects are not part of it: links to them dangle,
unless another source of the same build has them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from ...text import normalise_title
from ..markup import Link, LinkedText, joined
from ..pages import Dropped, Item, Page, Section
from ..wikitext import SEE_ALSO
from .base import READERS
from .escaped_anchors import title_of
from .json_lines import Line, json_object, lines, list_field, text_field, typed, well_formed
from .paragraphs import clean
from .source import MAX_TEXT, TOO_LONG, Source

_SECTION = "Section::::"
_TITLES = re.compile(r"(?<=[.!?]):")
_BULLET = re.compile(r"\ABULLET::::(?:-|\d+\.)?")
_MOST_LEVELS = 6
_MOST_TRAIL = 64
_NEAR = 64
_KEYS = (b'"wikipedia_id"', b'"wikipedia_title"')


@READERS.register("kilt")
class KiltReader:
    """Reads the JSON lines of KILT's knowledge source."""

    def recognises(self, source: Source) -> bool:
        """Whether the first line is a JSON object with KILT's names."""
        first = source.head.lstrip().partition(b"\n")[0]
        return first.startswith(b"{") and all(key in first for key in _KEYS)

    def records(self, source: Source) -> Iterator[Line | Dropped]:
        """Stream the lines."""
        return lines(source)

    def parse(self, record: Line) -> Iterable[Item]:
        """Give the article.

        Raises:
            HarpError: the line is no article of KILT.
        """
        with well_formed(record.place, "article of KILT"):
            fields = json_object(record.data)
            yield kilt_page(
                text_field(fields, "wikipedia_title"),
                list_field(fields, "text"),
                list_field(fields, "anchors"),
            )


def kilt_page(title: str, pieces: Sequence[str], anchors: Iterable[Mapping[str, Any]]) -> Item:
    """Make a page of an article's paragraphs and anchors.

    Raises:
        ValueError: a paragraph, an anchor or a field of one is of another type.
        KeyError: an anchor lacks a field.
    """
    page = Page(normalise_title(title), title, [])
    if not page.key:
        return Dropped("page without title")
    if sum(len(typed(piece, str, "paragraph")) for piece in pieces) > MAX_TEXT:
        return TOO_LONG
    inside: defaultdict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for anchor in anchors:
        number = typed(typed(anchor, dict, "anchor")["paragraph_id"], int, "paragraph_id")
        inside[number].append(anchor)
    level, heading = 1, ""
    paragraphs: list[LinkedText] = []
    for number, written in enumerate(pieces):
        found = inside.pop(number, [])
        if written.startswith(_SECTION):
            page.drops["link in a heading"] += len(found)
            _add(page, level, heading, paragraphs)
            titles = _TITLES.split(written.removeprefix(_SECTION).strip())
            level, heading = min(1 + len(titles), _MOST_LEVELS), titles[-1].removesuffix(".")
            paragraphs = []
        elif number == 0 and written.strip() == title.strip():
            page.drops["link in a heading"] += len(found)
        else:
            paragraphs.append(_paragraph(written, found, page.drops))
    _add(page, level, heading, paragraphs)
    page.see_also = list(dict.fromkeys(page.see_also))
    page.drops["anchor text not at its place"] += sum(map(len, inside.values()))
    return page


def _add(page: Page, level: int, heading: str, paragraphs: list[LinkedText]) -> None:
    body = joined(paragraph for paragraph in paragraphs if paragraph.text)
    if heading.lower() in SEE_ALSO:
        page.see_also += (link.target for link in body.links)
    else:
        page.sections.append(Section(level, heading, body))


def _paragraph(written: str, anchors: list[Mapping[str, Any]], drops: Counter[str]) -> LinkedText:
    body = LinkedText(written, [])
    placed: list[tuple[int, int, str]] = []
    for anchor in anchors:
        text, href = text_field(anchor, "text"), text_field(anchor, "href")
        start = _place(written, text, typed(anchor["start"], int, "start"))
        if start is None:
            drops["anchor text not at its place"] += 1
        else:
            placed.append((start, start + len(text), href))
    placed.sort()
    following = [start for start, _, _ in placed[1:]] + [len(written)]
    position = 0
    for (start, end, href), limit in zip(placed, following, strict=False):
        if start < position:
            drops["link inside a link"] += 1
        elif target := title_of(href, drops):
            trail = takewhile(str.islower, written[end : min(limit, end + _MOST_TRAIL)])
            position = end + len("".join(trail))
            body.links.append(Link(start, position, "", target))
    body.substitute(_BULLET, "")
    clean(body, drops)
    return body


def _place(written: str, text: str, start: int) -> int | None:
    """Where an anchor's text stands: at its offset, else at the one place near it."""
    if not text.strip() or start < 0:
        return None
    if written.startswith(text, start):
        return start
    first, last = max(0, start - _NEAR), start + len(text) + _NEAR
    only = written.find(text, first, last)
    return only if only >= 0 and written.find(text, only + 1, last) < 0 else None
