"""MediaWiki XML dumps: ``pages-articles.xml`` of any wiki, whole or multistream."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from io import BytesIO
from itertools import groupby
from pathlib import Path
from typing import IO, NamedTuple
from xml.etree.ElementTree import Element, ParseError, fromstring

from ...errors import HarpError
from ...text import normalise_title
from ..pages import Dropped, Item, Redirect
from ..wikitext import CANONICAL_NAMESPACES, UNSEEN_NAMESPACES, Site, parse_page
from .base import READERS
from .source import MAX_RECORD, MAX_TEXT, TOO_LONG, Source
from .streams import bzip2

_HIDDEN_IDS = ("-2", "6", "14")
_WIKITEXT = (None, "wikitext")
_REDIRECT = re.compile(r"\s*#redirect\s*:?\s*\[\[([^\[\]|\n]+)", re.IGNORECASE)
_BLOCK = 1 << 20
_MOST_TAGS = 1 << 20
_PAGE, _PAGE_END, _END = b"<page", b"</page>", b"</mediawiki>"


class _Pages(NamedTuple):
    """XML of some pages, compressed or not, and where it stands in its source."""

    place: str
    site: Site
    data: bytes
    compressed: bool = False
    pages: int = 1


@READERS.register("mediawiki")
class MediaWikiReader:
    """Reads MediaWiki XML exports, and wikitext by mwparserfromhell.

    One process cuts the XML into pages, many parse them. Of a multistream dump whose index lies
    beside it, only the index is read in one process; the streams are decompressed in many.
    """

    def recognises(self, source: Source) -> bool:
        """Whether the XML's root is ``<mediawiki>``."""
        return b"<mediawiki" in source.head[:4096]

    def records(self, source: Source) -> Iterator[_Pages | Dropped]:
        """Stream the XML of the pages.

        Raises:
            HarpError: the dump is truncated, is no XML, or does not fit its index.
        """
        site = _site(source)
        index = index_of(source)
        yield from _streams(source, site, index) if index else _cut(source, site)

    def parse(self, record: _Pages) -> Iterable[Item]:
        """Parse the wikitext of pages, newest revision each.

        Raises:
            HarpError: the XML is damaged.
        """
        try:
            data = _decompressed(record.data) if record.compressed else record.data
            if data.count(b"<") > _MOST_TAGS:
                yield Dropped("page of over a million XML tags")
                return
            pages = fromstring(b"<pages>%b</pages>" % data)
        except (ParseError, ValueError, OSError, EOFError) as error:
            what = " ".join(str(error).split())
            raise HarpError(
                f"{record.place}: no XML of MediaWiki pages ({what}): fetch it again"
            ) from error
        for page in pages.iterfind("page"):
            yield _item(page, record.site)


def _site(source: Source) -> Site:
    """Read namespaces, title case and language from the dump's ``<siteinfo>``."""
    head = source.head.partition(_PAGE + b">")[0].partition(_END)[0]
    start = head.find(b"<mediawiki")
    try:
        root = fromstring(head[start:] + _END)
    except ParseError as error:
        what = " ".join(str(error).split())
        raise HarpError(f"{source.name} is no MediaWiki dump ({what}): name another source") from (
            error
        )
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    info = root.find("siteinfo")
    return site_of(Element("siteinfo") if info is None else info)


def site_of(info: Element) -> Site:
    """What a wiki says of itself in ``<siteinfo>``."""
    listed = {
        space.get("key", ""): space.text.lower() for space in info.iter("namespace") if space.text
    }
    language = (info.findtext("dbname") or "").partition("wik")[0].replace("_", "-")
    return Site(
        namespaces=CANONICAL_NAMESPACES | {name for key, name in listed.items() if key != "0"},
        hidden=UNSEEN_NAMESPACES | {listed[key] for key in _HIDDEN_IDS if key in listed},
        first_letter=info.findtext("case") != "case-sensitive",
        language={"simple": "en", "": "en"}.get(language, language),
    )


def _cut(source: Source, site: Site) -> Iterator[_Pages | Dropped]:
    """Cut a stream into its ``<page>`` elements: inside one, the marks stand escaped."""
    number = 0
    with source.open() as file:
        for number, data in enumerate(_page_elements(file, source.name), start=1):
            if data is None:
                yield Dropped("page over 64 MiB")
            else:
                yield _Pages(f"{source.name}, page {number}", site, data)


def _page_elements(file: IO[bytes], name: str) -> Iterator[bytes | None]:
    buffer = bytearray()
    skipping, seen = False, 0
    while block := file.read(_BLOCK):
        buffer += block
        position = 0
        while (end := buffer.find(_PAGE_END, max(position, seen))) >= 0:
            end += len(_PAGE_END)
            start = buffer.find(_PAGE, position, end)
            if skipping or start < 0:
                yield None
            else:
                yield bytes(memoryview(buffer)[start:end])
            skipping, position = False, end
        del buffer[:position]
        seen = max(0, len(buffer) - len(_PAGE_END))
        if len(buffer) > MAX_RECORD:
            skipping = True
            del buffer[: -len(_PAGE_END)]
            seen = 0
    if _END not in buffer:
        raise HarpError(f"{name} is truncated (it has no {_END.decode()}): fetch it again")


def index_of(source: Source) -> Path | None:
    """The index beside a multistream dump, by the names that Wikimedia gives them."""
    if source.path is None or "-multistream" not in source.path.name:
        return None
    name = source.path.name.replace("-multistream", "-multistream-index", 1)
    plain = name.removesuffix(".bz2").replace(".xml", ".txt", 1)
    found = (source.path.with_name(plain + suffix) for suffix in (".bz2", ""))
    return next((path for path in found if path.is_file()), None)


def _streams(source: Source, site: Site, index: Path) -> Iterator[_Pages]:
    listed = Source(index.name, index)
    try:
        lines = (line for line in listed.lines() if not isinstance(line, Dropped))
        offsets = (int(line.partition(b":")[0]) for _, line in lines)
        streams = [(offset, sum(1 for _ in pages)) for offset, pages in groupby(offsets)]
    except ValueError as error:
        what = " ".join(str(error).split())[:200]
        raise HarpError(f"{index} is no index of a multistream dump ({what})") from error
    if not streams:
        raise HarpError(f"{index} is empty: fetch it again, or take it away")
    ends = [*(offset for offset, _ in streams[1:]), source.size]
    with source.open(decompress=False) as file:
        for (start, pages), end in zip(streams, ends, strict=True):
            data = b""
            if 0 <= start < end <= source.size and end - start <= MAX_RECORD:
                file.seek(start)
                data = file.read(end - start)
            if not data.startswith(b"BZh"):
                raise HarpError(f"{index} does not fit {source.path}: fetch both again")
            yield _Pages(f"{source.name}, byte {start}", site, data, True, pages)


def _decompressed(data: bytes) -> bytes:
    """The pages in the streams; what follows the last of them is left out.

    Raises:
        ValueError: it is far larger than streams of dumps are.
        OSError: it is damaged.
        EOFError: it is truncated.
    """
    with bzip2(BytesIO(data)) as file:
        found = file.read(MAX_RECORD + 1)
    if len(found) > MAX_RECORD:
        raise ValueError("a stream is over 64 MiB")
    return found[: found.rfind(_PAGE_END) + len(_PAGE_END)]


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
    if target is None and (found := _REDIRECT.match(text)):
        target = found[1]
    if target:
        return Redirect(
            normalise_title(title, first_letter=site.first_letter),
            normalise_title(target, first_letter=site.first_letter),
        )
    if not title or not text:
        return Dropped("page without text")
    if len(text) > MAX_TEXT:
        return TOO_LONG
    if revisions[-1].findtext("model") not in _WIKITEXT:
        return Dropped("page that is not wikitext")
    return parse_page(title, text, site)
