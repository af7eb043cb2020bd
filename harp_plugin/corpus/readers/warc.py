"""WARC files of web crawls, compressed or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from io import BytesIO
from typing import Any, NamedTuple

from fastwarc.stream_io import BrotliReader, ChunkedReader, GzipReader, ZstdReader
from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

from ...errors import HarpError, folded
from ..html import LONG_PAGE, MAX_PAGE, decode
from ..pages import Dropped, Item, Page, Redirect
from ..urls import WebAddress, registrable_domain
from .html import looks_like_html, page_items
from .source import Source

__all__ = ["WarcReader"]

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
_BAD_REDIRECT = Dropped("redirect to itself or to a broken address")
_OTHER_TYPE = Dropped("response that is not HTML")
_MAX_CODINGS = 8
_ENCODED = Dropped("page that cannot be decompressed")


class _Response(NamedTuple):
    """The body of a response, and the names of its codings, the outermost last.

    A response that redirects to another address has this ``location`` and no body.
    """

    url: str
    charset: str | None = None
    codings: str = ""
    data: bytes = b""
    location: str | None = None


class WarcReader:
    """Reads the HTML pages and redirects of WARC files; the key of a page is its canonical URL."""

    def recognizes(self, source: Source) -> bool:
        """Return whether the source starts with a WARC record."""
        return source.head.startswith(b"WARC/")

    def records(self, source: Source) -> Iterator[_Response | Dropped]:
        """Stream the responses as they were sent, before their codings are undone.

        Raises:
            HarpError: the file is truncated or damaged, or compressed by bzip2 or xz.
        """
        place = f"{source.name}, byte 0"
        if source.name.endswith((".bz2", ".xz")):
            raise HarpError(
                f"{source.name}: a WARC file is read if gzip or zstandard compressed it: unpack it"
            )
        with source.open(decompress=False) as file:
            try:
                for record in ArchiveIterator(file, WarcRecordType.any_type, auto_decode="none"):
                    place = f"{source.name}, byte {record.stream_pos}"
                    content = _read(record)
                    if content is None:
                        raise HarpError(f"{place}: the record is truncated: fetch it again")
                    yield content
            except (OSError, ValueError) as error:
                raise HarpError(
                    f"{place}: this record or the next one is damaged ({folded(error)}): "
                    "fetch it again"
                ) from error

    def parse(self, record: _Response) -> Iterable[Item]:
        """Decode and parse the page."""
        if record.location:
            address = WebAddress(record.url)
            target = address.resolve(record.location)
            yield _BAD_REDIRECT if isinstance(target, Dropped) else Redirect(address.key, target)
            return
        data = _decoded(record)
        if isinstance(data, Dropped):
            yield data
            return
        html = decode(data, record.charset)
        for item in page_items(html, partial(WebAddress, record.url)):
            if isinstance(item, Page):
                item.domain = registrable_domain(item.key)
            yield item


def _read(record: WarcRecord) -> _Response | Dropped | None:
    """Read a record of an archive; return None where its end is missing."""
    if record.is_http:
        record.parse_http()
    content = _read_headers(record)
    length = record.content_length
    if isinstance(content, _Response) and not content.location:
        if length <= MAX_PAGE:
            data = record.reader.read(length)
            return content._replace(data=data) if len(data) == length else None
        content = LONG_PAGE
    return content if record.reader.consume() == length else None


def _read_headers(record: WarcRecord) -> _Response | Dropped:
    """Tell from the headers what a record is; a response has no data yet."""
    url = (record.headers.get("WARC-Target-URI") or "").strip("<> ")
    if record.record_type == WarcRecordType.revisit:
        return Dropped("page that was visited before")
    if record.record_type in (WarcRecordType.resource, WarcRecordType.conversion):
        media_type = _media_type(record.headers.get("Content-Type"))
        return _Response(url) if _is_page(url, media_type) else _OTHER_TYPE
    if record.record_type != WarcRecordType.response:
        return Dropped("record that is not a response (request, metadata, ...)")
    headers = record.http_headers if record.is_http else None
    if headers is None or headers.status_code is None:
        return Dropped("response that is not HTTP")
    location = headers.get("Location")
    if headers.status_code in _REDIRECTS and location:
        return _Response(url, location=location)
    if headers.status_code != 200:
        return Dropped(f"response of status {headers.status_code}")
    if not _is_page(url, _media_type(headers.get("Content-Type"))):
        return _OTHER_TYPE
    codings = (headers.get(name) or "" for name in ("Content-Encoding", "Transfer-Encoding"))
    return _Response(url, record.http_charset, ",".join(codings))


def _media_type(header: str | None) -> str:
    return (header or "").partition(";")[0].strip().lower()


def _is_page(url: str, media_type: str) -> bool:
    return media_type in _HTML_TYPES and url[:5].lower().startswith(("http:", "https"))


def _decoded(response: _Response) -> bytes | Dropped:
    """Undo the codings of a response.

    A crawler that has undone a coding may have left its name: data that are HTML already stay.
    """
    data = response.data
    codings = (name.strip() for name in response.codings.lower().split(","))
    decoders = [_DECODERS[name] for name in codings if name in _DECODERS]
    if len(decoders) > _MAX_CODINGS:
        return _ENCODED
    for decoder in reversed(decoders):
        try:
            data = decoder(BytesIO(data)).read(MAX_PAGE + 1)
        except (OSError, ValueError):
            if not looks_like_html(data):
                return _ENCODED
    return LONG_PAGE if len(data) > MAX_PAGE else data
