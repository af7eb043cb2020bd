"""Output of WikiExtractor with ``--links``: JSON lines or ``<doc>`` elements.

This output has no redirects (links to them lead to missing pages, unless another source of the same
build holds the redirects), no lists and no links in them, no links to titles with a colon, and no
levels of sections. The title of a section is a line like any other. Here, a line is a title if it
is short, ends as WikiExtractor ends titles, holds no link, and is neither the first line nor the
last. A very short paragraph can be mistaken for a title, and a long title for a paragraph. With the
option ``--html`` of WikiExtractor, titles, their levels and lists are exact.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from ...errors import HarpError
from ...text import normalize_title, words
from ..markup import LinkedText, joined
from ..pages import NO_TEXT, NO_TITLE, Dropped, Item, Page
from ..wikitext import DEBRIS, wiki_language
from .escaped_anchors import decode_paragraph
from .json_lines import JsonLinesReader, Record, text_field
from .source import LONG_RECORD, LONG_TEXT, MAX_RECORD, MAX_TEXT, Source

__all__ = ["WikiExtractorReader"]

_HEADER = re.compile(r'<doc id="[^"]*"(?: revid="[^"]*")? url="([^"]*)" title="(.*)">\s*')
_HEADING = re.compile(r"<h([1-6])>(.*)</h\1>")
_LANGUAGE = re.compile(r"https?://([a-z-]+)\.(?:m\.)?[a-z]+\.org/")
_MAX_TITLE_WORDS = 8
_MAX_TITLE_LENGTH = 160


class WikiExtractorReader(JsonLinesReader):
    """Reads the output of WikiExtractor with ``--links``, of versions 2 and 3."""

    record_name = "article of WikiExtractor"

    def recognizes(self, source: Source) -> bool:
        """Tell whether the source starts with an article whose URL holds ``?curid=``."""
        head = source.head.lstrip()[:4096]
        return head.startswith((b'<doc id="', b'{"id": ')) and b"?curid=" in head

    def records(self, source: Source) -> Iterator[Record | Dropped]:
        """Stream the articles.

        Raises:
            HarpError: a ``<doc>`` is not closed, or text stands outside of a ``<doc>``.
        """
        lines = super().records(source)
        is_xml = source.head.lstrip().startswith(b"<doc ")
        return _documents(source.name, lines) if is_xml else lines

    def items(self, record: Record) -> Iterable[Item]:
        """Give the article."""
        if record.data.startswith(b"<doc "):
            title, url, text = _document(record.data.decode())
        else:
            fields = record.fields()
            title, url, text = (text_field(fields, name) for name in ("title", "url", "text"))
            title = html.unescape(title)
            text = text.removeprefix(f"{title}\n\n")
        return [_page(title, url, text)]


def _documents(name: str, lines: Iterable[Record | Dropped]) -> Iterator[Record | Dropped]:
    """Join the lines of each ``<doc>`` element.

    The text inside an element is escaped, so that it never holds the tags themselves.
    """
    start, size = 0, 0
    parts: list[bytes] = []
    for line in lines:
        if isinstance(line, Dropped):
            size = MAX_RECORD + 1
            if not start:
                yield line
            continue
        if line.data.startswith(b"<doc "):
            if start:
                break
            start, size, parts = line.number, 0, []
        elif not start:
            raise HarpError(f"{line.place}: text outside of <doc>: run WikiExtractor again")
        size += len(line.data)
        if size <= MAX_RECORD:
            parts.append(line.data)
        if line.data.strip() == b"</doc>":
            yield Record(name, start, b"".join(parts)) if size <= MAX_RECORD else LONG_RECORD
            start = 0
    if start:
        raise HarpError(f"{name}, line {start}: <doc> has no end: run WikiExtractor again")


def _document(text: str) -> tuple[str, str, str]:
    """Return the title, the URL and the text of a ``<doc>``.

    The first line of the text is left out where it repeats the title.

    Raises:
        ValueError: the start tag lacks the id, the URL or the title.
    """
    header = _HEADER.match(text)
    if header is None:
        raise ValueError("<doc> without id, url and title")
    title = html.unescape(header[2])
    body = text[header.end() :].rstrip().removesuffix("</doc>")
    first, _, rest = body.partition("\n")
    return title, header[1], rest if html.unescape(first).strip() == title.strip() else body


def _page(title: str, url: str, text: str) -> Item:
    key = normalize_title(title)
    if not key:
        return NO_TITLE
    if not text.strip():
        return NO_TEXT
    if len(text) > MAX_TEXT:
        return LONG_TEXT
    wiki = _LANGUAGE.match(url)
    page = Page(key, title, [], language=wiki_language(wiki[1] if wiki else ""), debris=DEBRIS)
    for level, heading, body in _sections(text, page.drops):
        page.add_section(level, heading, body)
    return page


def _sections(text: str, drops: Counter[str]) -> Iterator[tuple[int, str, LinkedText]]:
    """Give the level, the heading and the text of each section."""
    lines = [line for line in text.split("\n") if line.strip()]
    is_exact = any(_HEADING.fullmatch(line) for line in lines)
    titles: set[str] = set()
    level, title = 1, ""
    paragraphs: list[LinkedText] = []
    for number, line in enumerate(lines):
        heading = _HEADING.fullmatch(line)
        body = decode_paragraph(heading[2] if heading else line, Counter() if heading else drops)
        may_be_title = not is_exact and 0 < number < len(lines) - 1
        if heading or (may_be_title and _is_title(body)):
            yield level, title, joined(paragraphs)
            level, paragraphs = int(heading[1]) if heading else 2, []
            title = body.text if heading else body.text.removesuffix(".")
            titles.add(body.text if body.text.endswith(("!", "?")) else f"{body.text}.")
        elif body.text and not (is_exact and body.text in titles):
            paragraphs.append(body)
    yield level, title, joined(paragraphs)


def _is_title(line: LinkedText) -> bool:
    text = line.text
    return (
        text.endswith((".", "!", "?"))
        and not line.links
        and len(text) <= _MAX_TITLE_LENGTH
        and len(words(text)) <= _MAX_TITLE_WORDS
        and not text[0].islower()
        and ". " not in text
    )
