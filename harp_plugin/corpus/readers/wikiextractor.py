"""Output of WikiExtractor with ``--links``: JSON lines or ``<doc>`` elements.

What its output does not tell: redirects (links to them dangle, unless another source of the same
build has them), lists and what they link to, links to titles with a colon, and the level of a
section. Its section titles are lines like any other: here, a line is one if it is short, ends as
WikiExtractor ends them, holds no link, and is neither the first line nor the last. A very short
paragraph can be taken for a title, and a long title for a paragraph. With ``--html`` as well,
titles, their levels and lists are told exactly.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from ...errors import HarpError
from ...text import normalise_title, words
from ..markup import LinkedText, joined
from ..pages import Dropped, Item, Page, Section
from ..wikitext import DEBRIS, SEE_ALSO
from .base import READERS
from .escaped_anchors import decoded
from .json_lines import Line, json_object, lines, text_field, well_formed
from .source import MAX_RECORD, MAX_TEXT, TOO_LONG, Source

_HEADER = re.compile(r'<doc id="[^"]*"(?: revid="[^"]*")? url="([^"]*)" title="(.*)">\s*')
_HEADING = re.compile(r"<h([1-6])>(.*)</h\1>")
_LANGUAGE = re.compile(r"https?://([a-z-]+)\.(?:m\.)?[a-z]+\.org/")
_MOST_TITLE_WORDS = 8
_MOST_TITLE_CHARACTERS = 160


@READERS.register("wikiextractor")
class WikiExtractorReader:
    """Reads what WikiExtractor writes with ``--links``, of versions 2 and 3, compressed or not."""

    def recognises(self, source: Source) -> bool:
        """Whether it starts with an article that WikiExtractor names by ``?curid=``."""
        head = source.head.lstrip()[:4096]
        return head.startswith((b'<doc id="', b'{"id": ')) and b"?curid=" in head

    def records(self, source: Source) -> Iterator[Line | Dropped]:
        """Stream the articles.

        Raises:
            HarpError: a ``<doc>`` is not closed, or text stands outside of one.
        """
        is_xml = source.head.lstrip().startswith(b"<doc ")
        yield from _documents(source) if is_xml else lines(source)

    def parse(self, record: Line) -> Iterable[Item]:
        """Decode an article's text and links.

        Raises:
            HarpError: the record is no article.
        """
        with well_formed(record.place, "article of WikiExtractor"):
            if record.data.startswith(b"<doc "):
                title, url, text = _document(record.data.decode())
            else:
                fields = json_object(record.data)
                title, url, text = (text_field(fields, name) for name in ("title", "url", "text"))
                title = html.unescape(title)
                text = text.removeprefix(f"{title}\n\n")
            yield _page(title, url, text)


def _documents(source: Source) -> Iterator[Line | Dropped]:
    """Cut a file into its ``<doc>`` elements; inside one, the marks stand escaped."""
    start, size = 0, 0
    parts: list[bytes] = []
    for line in lines(source):
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
            document = Line(source.name, start, b"".join(parts))
            yield document if size <= MAX_RECORD else Dropped("page over 64 MiB")
            start = 0
    if start:
        raise HarpError(f"{source.name}, line {start}: <doc> has no end: run WikiExtractor again")


def _document(text: str) -> tuple[str, str, str]:
    """Title, URL and text of a ``<doc>``, without the line that repeats the title."""
    header = _HEADER.match(text)
    if header is None:
        raise ValueError("<doc> without id, url and title")
    title = html.unescape(header[2])
    body = text[header.end() :].rstrip().removesuffix("</doc>")
    first, _, rest = body.partition("\n")
    return title, header[1], rest if html.unescape(first).strip() == title.strip() else body


def _page(title: str, url: str, text: str) -> Item:
    if not normalise_title(title) or not text.strip():
        return Dropped("page without text" if normalise_title(title) else "page without title")
    if len(text) > MAX_TEXT:
        return TOO_LONG
    language = _LANGUAGE.match(url)
    page = Page(
        normalise_title(title),
        title,
        [],
        language={"simple": "en"}.get(language[1], language[1]) if language else "en",
        debris=DEBRIS,
    )
    for section in _sections(text, page.drops):
        if section.title.lower() in SEE_ALSO:
            page.see_also += (link.target for link in section.body.links)
        else:
            page.sections.append(section)
    page.see_also = list(dict.fromkeys(page.see_also))
    return page


def _sections(text: str, drops: Counter[str]) -> Iterator[Section]:
    written = [line for line in text.split("\n") if line.strip()]
    exact = any(_HEADING.fullmatch(line) for line in written)
    told: set[str] = set()
    level, title = 1, ""
    paragraphs: list[LinkedText] = []
    for number, line in enumerate(written):
        heading = _HEADING.fullmatch(line)
        shown = decoded(heading[2] if heading else line, Counter() if heading else drops)
        inner = not exact and 0 < number < len(written) - 1
        if heading or (inner and _is_title(shown)):
            yield Section(level, title, joined(paragraphs))
            level, paragraphs = int(heading[1]) if heading else 2, []
            title = shown.text if heading else shown.text.removesuffix(".")
            told.add(shown.text if shown.text.endswith(("!", "?")) else f"{shown.text}.")
        elif shown.text and not (exact and shown.text in told):
            paragraphs.append(shown)
    yield Section(level, title, joined(paragraphs))


def _is_title(line: LinkedText) -> bool:
    text = line.text
    return (
        text.endswith((".", "!", "?"))
        and not line.links
        and len(text) <= _MOST_TITLE_CHARACTERS
        and len(words(text)) <= _MOST_TITLE_WORDS
        and not text[0].islower()
        and ". " not in text
    )
