"""WARC files of web crawls, compressed or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from io import BytesIO
from typing import Any, NamedTuple

from fastwarc.stream_io import BrotliReader, ChunkedReader, GzipReader, ZstdReader
from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

from ...errors import HarpError
from ..html import MAX_PAGE, decode, read_document
from ..pages import Dropped, Item, Page, Redirect
from ..urls import WebAddress, registrable_domain
from .base import READERS
from .html import TOO_LONG, looks_like_html, page_items
from .source import Source

_REDIRECTS = (301, 302, 303, 307, 308)
_HTML_TYPES = ("text/html", "application/xhtml+xml")
_DECODERS: dict[str, Callable[[BytesIO], Any]] = {
    "br": BrotliReader,
    "chunked": ChunkedReader,
    "deflate": partial(GzipReader, zlib=True),
    "gzip": GzipReader,
    "x-gzip": GzipReader,
    "zstd": ZstdReader,
}
_OTHER_TYPE = Dropped("response that is not HTML")
_MOST_CODINGS = 8
_ENCODED = Dropped("page that cannot be decompressed")


class _Response(NamedTuple):
    """The body of a response, and how it is encoded, outermost last."""

    url: str
    charset: str | None
    codings: str
    data: bytes


class _Moved(NamedTuple):
    url: str
    location: str


@READERS.register("warc")
class WarcReader:
    """Reads the HTML pages and redirects of WARC files; a page's key is its canonical URL."""

    def recognises(self, source: Source) -> bool:
        """Whether it starts with a WARC record."""
        return source.head.startswith(b"WARC/")

    def records(self, source: Source) -> Iterator[_Response | _Moved | Dropped]:
        """Stream responses as they were sent, still encoded.

        Raises:
            HarpError: the file is truncated or damaged.
        """
        place = f"{source.name}, byte 0"
        with source.open(decompress=False) as file:
            try:
                for record in ArchiveIterator(file, WarcRecordType.any_type, auto_decode="none"):
                    place = f"{source.name}, byte {record.stream_pos}"
                    found = _read(record)
                    if found is None:
                        raise HarpError(f"{place}: the record is truncated: fetch it again")
                    yield found
            except (OSError, ValueError) as error:
                what = " ".join(str(error).split())
                raise HarpError(
                    f"{place}: the record or the next is damaged ({what}): fetch it again"
                ) from error

    def parse(self, record: _Response | _Moved) -> Iterable[Item]:
        """Decode and parse the page."""
        if isinstance(record, _Moved):
            yield _redirect(record)
            return
        data = _decoded(record)
        if isinstance(data, Dropped):
            yield data
            return
        document = read_document(decode(data, record.charset))
        if isinstance(document, Dropped):
            yield document
            return
        address = WebAddress(record.url, document.base)
        for item in page_items(document, address):
            if isinstance(item, Page):
                item.domain = registrable_domain(item.key)
            yield item


def _read(record: WarcRecord) -> _Response | _Moved | Dropped | None:
    """What a record holds; None where its end is missing."""
    if record.is_http:
        record.parse_http()
    found = _kind(record)
    length = record.content_length
    if isinstance(found, _Response) and length <= MAX_PAGE:
        data = record.reader.read(length)
        return found._replace(data=data) if len(data) == length else None
    if isinstance(found, _Response):
        found = TOO_LONG
    return found if record.reader.consume() == length else None


def _kind(record: WarcRecord) -> _Response | _Moved | Dropped:
    url = (record.headers.get("WARC-Target-URI") or "").strip("<> ")
    if record.record_type == WarcRecordType.revisit:
        return Dropped("page that was visited before")
    if record.record_type in (WarcRecordType.resource, WarcRecordType.conversion):
        kind = _media_type(record.headers.get("Content-Type"))
        return _Response(url, None, "", b"") if _is_page(url, kind) else _OTHER_TYPE
    if record.record_type != WarcRecordType.response:
        return Dropped("record that is no response (request, metadata, ...)")
    headers = record.http_headers if record.is_http else None
    if headers is None or headers.status_code is None:
        return Dropped("response that is not HTTP")
    location = headers.get("Location")
    if headers.status_code in _REDIRECTS and location:
        return _Moved(url, location)
    if headers.status_code != 200:
        return Dropped(f"response of status {headers.status_code}")
    if not _is_page(url, _media_type(headers.get("Content-Type"))):
        return _OTHER_TYPE
    codings = (headers.get(name) or "" for name in ("Content-Encoding", "Transfer-Encoding"))
    return _Response(url, record.http_charset, ",".join(codings), b"")


def _media_type(written: str | None) -> str:
    return (written or "").partition(";")[0].strip().lower()


def _is_page(url: str, media_type: str) -> bool:
    return media_type in _HTML_TYPES and url[:5].lower().startswith(("http:", "https"))


def _redirect(moved: _Moved) -> Item:
    address = WebAddress(moved.url)
    target = address.resolve(moved.location)
    if isinstance(target, Dropped):
        return Dropped("redirect to itself or to a broken address")
    return Redirect(address.key, target)


def _decoded(response: _Response) -> bytes | Dropped:
    """Undo the codings, within bounds; crawlers that have undone some leave their names."""
    data = response.data
    codings = (name.strip() for name in response.codings.lower().split(","))
    decoders = [_DECODERS[name] for name in codings if name in _DECODERS]
    if len(decoders) > _MOST_CODINGS:
        return _ENCODED
    for decoder in reversed(decoders):
        try:
            data = decoder(BytesIO(data)).read(MAX_PAGE + 1)
        except (OSError, ValueError):
            if not looks_like_html(data):
                return _ENCODED
    return TOO_LONG if len(data) > MAX_PAGE else data
