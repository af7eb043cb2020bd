"""KILT's snapshot of Wikipedia (2019/08/01): ``kilt_knowledgesource.json``, or from ir_datasets.

An article is a list of paragraphs. The first one is its title, ``Section::::History.:Origins.`` is
the path of titles of a section, and ``BULLET::::-`` starts an item of a list. An anchor names its
paragraph, its characters in the paragraph, and its target as a quoted title. The letters that
trail an anchor stand behind it; here, they become a part of it, as in MediaWiki. KILT holds no
redirects: links to them lead to missing pages, unless another source of the build holds them.
"""

from __future__ import annotations

import html
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any
from urllib.parse import unquote

from ...text import normalize_title
from ..markup import Link, LinkedText, joined
from ..pages import NO_TITLE, Item, Page
from ..wikitext import CANONICAL_NAMESPACES
from ..wikitext.cleanup import clean_paragraph
from .json_lines import JsonLinesReader, Record, checked, list_field, text_field
from .source import LONG_TEXT, MAX_TEXT

__all__ = ["KiltReader", "kilt_page"]

_SECTION = "Section::::"
_TITLES = re.compile(r"(?<=[.!?]):")
_BULLET = re.compile(r"\ABULLET::::(?:-|\d+\.)?")
_EXTERNAL = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//|(?:mailto|news|tel|sips?|urn|geo):", re.I)
_IMPOSSIBLE = re.compile(r"[\[\]{}|<>]")
_WIKIS = re.compile(r"w|wikt|wiktionary", re.I)
_MAX_TRAIL = 64
_MAX_LEVEL = 6
_MAX_DISTANCE = 64


class KiltReader(JsonLinesReader):
    """Reads the JSON lines of KILT's knowledge source."""

    field_names = (b'"wikipedia_id"', b'"wikipedia_title"')
    record_name = "article of KILT"

    def items(self, record: Record) -> Iterable[Item]:
        """Give the article."""
        fields = record.fields()
        title = text_field(fields, "wikipedia_title")
        return [kilt_page(title, list_field(fields, "text"), list_field(fields, "anchors"))]


def kilt_page(title: str, pieces: Sequence[str], anchors: Iterable[Mapping[str, Any]]) -> Item:
    """Make a page of an article.

    Args:
        title: the title of the article.
        pieces: its paragraphs, and the marks of its sections.
        anchors: its anchors, each with ``paragraph_id``, ``start``, ``text`` and ``href``.

    Raises:
        ValueError: a paragraph, an anchor or a field of an anchor has another type.
        KeyError: an anchor lacks a field.
    """
    page = Page(normalize_title(title), title, [])
    if not page.key:
        return NO_TITLE
    if sum(len(checked(piece, str, "paragraph")) for piece in pieces) > MAX_TEXT:
        return LONG_TEXT
    anchors_by_piece: defaultdict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for anchor in anchors:
        number = checked(checked(anchor, dict, "anchor")["paragraph_id"], int, "paragraph_id")
        anchors_by_piece[number].append(anchor)
    level, heading = 1, ""
    paragraphs: list[LinkedText] = []
    for number, piece in enumerate(pieces):
        piece_anchors = anchors_by_piece.pop(number, [])
        if piece.startswith(_SECTION):
            page.drops["link in a heading"] += len(piece_anchors)
            page.add_section(level, heading, joined(paragraphs))
            titles = _TITLES.split(piece.removeprefix(_SECTION).strip())
            level, heading = min(1 + len(titles), _MAX_LEVEL), titles[-1].removesuffix(".")
            paragraphs = []
        elif number == 0 and piece.strip() == title.strip():
            page.drops["link in a heading"] += len(piece_anchors)
        elif (paragraph := _paragraph(piece, piece_anchors, page.drops)).text:
            paragraphs.append(paragraph)
    page.add_section(level, heading, joined(paragraphs))
    page.drops["anchor text not at its place"] += sum(map(len, anchors_by_piece.values()))
    return page


def _paragraph(piece: str, anchors: list[Mapping[str, Any]], drops: Counter[str]) -> LinkedText:
    body = LinkedText(piece, [])
    spans: list[tuple[int, int, str]] = []
    for anchor in anchors:
        text, href = text_field(anchor, "text"), text_field(anchor, "href")
        start = _place(piece, text, checked(anchor["start"], int, "start"))
        if start is None:
            drops["anchor text not at its place"] += 1
        else:
            spans.append((start, start + len(text), href))
    spans.sort()
    next_starts = [start for start, _, _ in spans[1:]] + [len(piece)]
    position = 0
    for (start, end, href), next_start in zip(spans, next_starts, strict=False):
        if start < position:
            drops["link inside a link"] += 1
        elif target := _link_target(href, drops):
            position = end + len(_link_trail(piece, end, next_start))
            body.links.append(Link(start, position, "", target))
    body.substitute(_BULLET, "")
    clean_paragraph(body, drops)
    return body


def _place(piece: str, text: str, start: int) -> int | None:
    """Return where an anchor text stands: at its offset, else at the only place near it."""
    if not text.strip() or start < 0:
        return None
    if piece.startswith(text, start):
        return start
    first, last = max(0, start - _MAX_DISTANCE), start + len(text) + _MAX_DISTANCE
    place = piece.find(text, first, last)
    return place if place >= 0 and piece.find(text, place + 1, last) < 0 else None


def _link_trail(text: str, start: int, end: int) -> str:
    """Return the lower-case letters behind an anchor, which MediaWiki shows as a part of it."""
    return "".join(takewhile(str.islower, text[start : min(end, start + _MAX_TRAIL)]))


def _link_target(href: str, drops: Counter[str]) -> str | None:
    """Return the title that a quoted target names, or None where it names no article."""
    name = html.unescape(unquote(href)).strip()
    prefix, colon, _ = name.removeprefix(":").partition(":")
    if _EXTERNAL.match(name):
        drops["link to another site"] += 1
    elif colon and prefix.strip().replace("_", " ").lower() in CANONICAL_NAMESPACES:
        drops["link to another namespace"] += 1
    elif colon and "#" not in prefix and _WIKIS.fullmatch(prefix):
        drops["link to another wiki"] += 1
    elif _IMPOSSIBLE.search(title := normalize_title(name)):
        drops["link to an impossible title"] += 1
    elif title:
        return title
    else:
        drops["link inside the page"] += 1
    return None
