"""MediaWiki XML dumps: ``pages-articles.xml`` of any wiki, whole or multistream."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import IO, NamedTuple
from xml.etree.ElementTree import Element, ParseError, fromstring

from ...errors import HarpError, folded
from ...text import normalize_title
from ..pages import NO_TEXT, Dropped, Item, Redirect
from ..wikitext import CANONICAL_NAMESPACES, MEDIA_NAMESPACES, Site, parse_page, wiki_language
from .source import LONG_RECORD, LONG_TEXT, MAX_RECORD, MAX_TEXT, Source, decompressed

__all__ = ["MediaWikiReader", "multistream_index", "read_site"]

_MEDIA_IDS = ("-2", "6", "14")
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_WIKITEXT = (None, "wikitext")
_REDIRECT = re.compile(r"\s*#redirect\s*:?\s*\[\[([^\[\]|\n]+)", re.IGNORECASE)
_BLOCK = 1 << 20
_MAX_TAGS = 1 << 20
_PAGE, _PAGE_END, _END = b"<page", b"</page>", b"</mediawiki>"


class _Pages(NamedTuple):
    """The XML of one page, or a compressed stream of several pages.

    Attributes:
        place: where it stands, as messages name it.
        site: the settings of the wiki.
        data: the XML, compressed by bzip2 or not.
        pages: the number of pages.
    """

    place: str
    site: Site
    data: bytes
    pages: int = 1


class MediaWikiReader:
    """Reads XML dumps of MediaWiki, and parses their wikitext with mwparserfromhell.

    One process cuts the XML into pages, and many processes parse them. Of a multistream dump that
    has its index next to it, one process reads the index only, and many decompress the streams.
    """

    def recognizes(self, source: Source) -> bool:
        """Return whether the root of the XML is ``<mediawiki>``."""
        return b"<mediawiki" in source.head[:4096]

    def records(self, source: Source) -> Iterator[_Pages | Dropped]:
        """Stream the XML of the pages.

        Raises:
            HarpError: the dump is truncated, is not XML, or does not fit its index.
        """
        site, index = _dump_site(source), multistream_index(source)
        yield from _streams(source, site, index) if index else _single_pages(source, site)

    def parse(self, record: _Pages) -> Iterable[Item]:
        """Parse the wikitext of the newest revision of each page.

        Raises:
            HarpError: the XML is damaged.
        """
        try:
            data = _xml(record.data)
            if data.count(b"<") > _MAX_TAGS:
                yield Dropped("page of over a million XML tags")
                return
            pages = fromstring(b"<pages>%b</pages>" % data)
        except (ParseError, ValueError, OSError, EOFError) as error:
            raise HarpError(
                f"{record.place}: no XML of MediaWiki pages ({folded(error)}): fetch it again"
            ) from error
        for page in pages.iterfind("page"):
            yield _item(page, record.site)


def _dump_site(source: Source) -> Site:
    """Read the settings of the wiki from the start of a dump."""
    head = source.head.partition(_PAGE + b">")[0].partition(_END)[0]
    start = head.find(b"<mediawiki")
    try:
        root = fromstring(head[start:] + _END)
    except ParseError as error:
        raise HarpError(
            f"{source.name} is not a MediaWiki dump ({folded(error)}): name another source"
        ) from error
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    info = root.find("siteinfo")
    return read_site(Element("siteinfo") if info is None else info, root.get(_LANGUAGE))


def read_site(info: Element, language: str | None = None) -> Site:
    """Read the settings from ``<siteinfo>``; the language only where the dump declares none."""
    names = {
        space.get("key", ""): space.text.lower() for space in info.iter("namespace") if space.text
    }
    code = (info.findtext("dbname") or "").partition("wik")[0].replace("_", "-")
    return Site(
        namespaces=CANONICAL_NAMESPACES | {name for key, name in names.items() if key != "0"},
        media=MEDIA_NAMESPACES | {names[key] for key in _MEDIA_IDS if key in names},
        first_letter=info.findtext("case") != "case-sensitive",
        language=language or wiki_language(code),
    )


def _single_pages(source: Source, site: Site) -> Iterator[_Pages | Dropped]:
    """Give a record for each page of a dump."""
    with source.open() as file:
        for number, data in enumerate(_page_elements(file, source.name), start=1):
            if data is None:
                yield LONG_RECORD
            else:
                yield _Pages(f"{source.name}, page {number}", site, data)


def _page_elements(file: IO[bytes], name: str) -> Iterator[bytes | None]:
    """Cut a file into its ``<page>`` elements; give None for one over 64 MiB.

    The text inside an element is escaped, so that it never holds the tags themselves.
    """
    buffer = bytearray()
    skipping, searched = False, 0
    while block := file.read(_BLOCK):
        buffer += block
        position = 0
        while (end := buffer.find(_PAGE_END, max(position, searched))) >= 0:
            end += len(_PAGE_END)
            start = buffer.find(_PAGE, position, end)
            if skipping or start < 0:
                yield None
            else:
                yield bytes(memoryview(buffer)[start:end])
            skipping, position = False, end
        del buffer[:position]
        searched = max(0, len(buffer) - len(_PAGE_END))
        if len(buffer) > MAX_RECORD:
            skipping = True
            del buffer[: -len(_PAGE_END)]
            searched = 0
    if _END not in buffer:
        raise HarpError(f"{name} is truncated (it has no {_END.decode()}): fetch it again")


def multistream_index(source: Source) -> Path | None:
    """Return the index next to a multistream dump, by the names that Wikimedia gives both."""
    if source.path is None or "-multistream" not in source.path.name:
        return None
    name = source.path.name.replace("-multistream", "-multistream-index", 1)
    plain = name.removesuffix(".bz2").replace(".xml", ".txt", 1)
    paths = (source.path.with_name(plain + suffix) for suffix in (".bz2", ""))
    return next((path for path in paths if path.is_file()), None)


def _streams(source: Source, site: Site, index: Path) -> Iterator[_Pages]:
    """Give a record for each compressed stream of a multistream dump."""
    try:
        lines = Source(index.name, index).lines()
        texts = (line[1] for line in lines if not isinstance(line, Dropped))
        offsets = (int(text.partition(b":")[0]) for text in texts)
        streams = [(offset, sum(1 for _ in pages)) for offset, pages in groupby(offsets)]
    except ValueError as error:
        raise HarpError(
            f"{index} is not the index of a multistream dump ({folded(error)}): fetch it again"
        ) from error
    if not streams:
        raise HarpError(f"{index} is empty: fetch it again, or remove it")
    ends = [*(offset for offset, _ in streams[1:]), source.size]
    with source.open(decompress=False) as file:
        for (start, pages), end in zip(streams, ends, strict=True):
            data = b""
            if 0 <= start < end <= source.size and end - start <= MAX_RECORD:
                file.seek(start)
                data = file.read(end - start)
            if not data.startswith(b"BZh"):
                raise HarpError(f"{index} does not fit {source.path}: fetch both again")
            yield _Pages(f"{source.name}, byte {start}", site, data, pages)


def _xml(data: bytes) -> bytes:
    """Return the pages of a record, without what stands behind the last page.

    Raises:
        ValueError: the pages are far larger than those in the streams of dumps.
        OSError: a stream is damaged.
        EOFError: a stream is truncated.
    """
    with decompressed(BytesIO(data)) as file:
        xml = file.read(MAX_RECORD + 1)
    if len(xml) > MAX_RECORD:
        raise ValueError("a stream is over 64 MiB")
    return xml[: xml.rfind(_PAGE_END) + len(_PAGE_END)]


def _item(page: Element, site: Site) -> Item:
    title = page.findtext("title") or ""
    namespace = page.findtext("ns")
    prefix, colon, _ = title.partition(":")
    if namespace is None and colon and prefix.lower() in site.namespaces:
        namespace = "other"
    if namespace not in (None, "0"):
        return Dropped("page of another namespace")
    revisions = page.findall("revision")
    text = (revisions[-1].findtext("text") or "") if revisions else ""
    redirect = page.find("redirect")
    target = None if redirect is None else redirect.get("title")
    if target is None and (match := _REDIRECT.match(text)):
        target = match[1]
    if target:
        return Redirect(
            normalize_title(title, first_letter=site.first_letter),
            normalize_title(target, first_letter=site.first_letter),
        )
    if not title or not text:
        return NO_TEXT
    if len(text) > MAX_TEXT:
        return LONG_TEXT
    if revisions[-1].findtext("model") not in _WIKITEXT:
        return Dropped("page that is not wikitext")
    return parse_page(title, text, site)
