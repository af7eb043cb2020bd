"""WARC files: real ones, damaged ones, and what servers send."""

import bz2
import gzip
import lzma
import re
import zlib
from collections import Counter

import pytest
from fastwarc.stream_io import BrotliWriter
from hypothesis import given
from hypothesis import strategies as st
from reading import read, read_bytes

from harp_plugin.corpus.pages import Dropped, Page, Redirect
from harp_plugin.errors import HarpError

HTML = b"<title>T</title><p>A paragraph with <a href='/b#x'>a link</a> in it."


def record(block: bytes, kind="response", url="http://www.a.co.uk/a", media="application/http"):
    head = f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nContent-Type: {media}\r\n"
    return f"{head}Content-Length: {len(block)}\r\n\r\n".encode() + block + b"\r\n\r\n"


def response(body: bytes = HTML, status="200 OK", url="http://www.a.co.uk/a", **headers) -> bytes:
    headers = {"Content_Type": "text/html", **headers}
    lines = [f"HTTP/1.1 {status}", *(f"{k.replace('_', '-')}: {v}" for k, v in headers.items())]
    return record("\r\n".join(lines).encode() + b"\r\n\r\n" + body, url=url)


def items(*records: bytes):
    return read_bytes(b"".join(records), "x.warc")


def test_page():
    (page,) = items(response(url="HTTP://www.A.co.uk:80/a#x"))
    assert (page.key, page.title, page.domain) == ("http://www.a.co.uk/a", "T", "a.co.uk")
    (section,) = page.sections
    assert section.body.text == "A paragraph with a link in it."
    assert section.body.links[0].target == "http://www.a.co.uk/b"


def test_compressed_by_record_as_crawlers_do():
    data = b"".join(
        map(gzip.compress, (response(url="http://a.b/1"), response(url="http://a.b/2")))
    )
    assert [page.key for page in read_bytes(data, "x.warc.gz")] == ["http://a.b/1", "http://a.b/2"]


@pytest.mark.parametrize(("compress", "ending"), [(bz2.compress, "bz2"), (lzma.compress, "xz")])
def test_compressed_as_a_whole(compress, ending):
    with pytest.raises(HarpError, match=f"x.warc.{ending}: a WARC file is read if gzip or zstand"):
        read_bytes(compress(response()), f"x.warc.{ending}")


def test_redirects_and_canonical_addresses():
    moved = response(b"", "301 Moved", Location="../c?d#e")
    assert items(moved) == [Redirect("http://www.a.co.uk/a", "http://www.a.co.uk/c?d")]
    circle = response(b"", "302 Found", Location="#x")
    assert items(circle) == [Dropped("redirect to itself or to a broken address")]
    redirect, page = items(response(b"<link rel=canonical href=/home>" + HTML))
    assert redirect == Redirect("http://www.a.co.uk/home", page.key)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (response(status="404 Not Found"), "response of status 404"),
        (response(status="301 Moved"), "response of status 301"),
        (response(Content_Type="image/png"), "response that is not HTML"),
        (response(url="ftp://a.b/"), "response that is not HTML"),
        (response(b"<html>"), "page without text"),
        (response(b"<p>" + b"x" * (9 << 20)), "page over 8 MiB"),
        (response(zlib.compress(bytes(9 << 20)), Content_Encoding="deflate"), "page over 8 MiB"),
        (response(gzip.compress(bytes(1 << 25)), Content_Encoding="gzip"), "page over 8 MiB"),
        (response(b"\x1f\x8bjunk", Content_Encoding="gzip"), "page that cannot be decompressed"),
        (record(b"garbage"), "response that is not HTTP"),
        (record(b"1.2.3.4", url="dns:a.b", media="text/dns"), "response that is not HTTP"),
        (record(b"x", "request"), "record that is not a response (request, metadata, ...)"),
        (record(b"x", "warcinfo"), "record that is not a response (request, metadata, ...)"),
        (record(b"x", "revisit"), "page that was visited before"),
        (record(b"text", "conversion", media="text/plain"), "response that is not HTML"),
    ],
)
def test_drops(data, reason):
    page = response()
    assert items(data, page) == [Dropped(reason), *items(page)]


def test_resources_are_pages():
    (page,) = items(record(HTML, "resource", media="text/html; charset=utf-8"))
    assert page.title == "T"


def brotli(data: bytes, folder) -> bytes:
    path = folder / "x.br"
    with path.open("wb") as file, BrotliWriter(file) as writer:
        writer.write(data)
    return path.read_bytes()


def test_codings(tmp_path):
    chunked = b"5\r\n" + HTML[:5] + b"\r\n%x\r\n" % (len(HTML) - 5) + HTML[5:] + b"\r\n0\r\n\r\n"
    packed = gzip.compress(HTML)
    both = b"%x\r\n" % len(packed) + packed + b"\r\n0\r\n\r\n"
    plain = items(response())
    for data in (
        response(chunked, Transfer_Encoding="chunked"),
        response(packed, Content_Encoding="GZip"),
        response(zlib.compress(HTML), Content_Encoding="deflate"),
        response(brotli(HTML, tmp_path), Content_Encoding="br"),
        response(both, Transfer_Encoding="chunked", Content_Encoding="gzip"),
        response(HTML, Transfer_Encoding="chunked", Content_Encoding="br"),
    ):
        assert items(data) == plain


def test_charset_of_the_header():
    (page,) = items(response("<p>é".encode("latin-1"), Content_Type="text/html; charset=latin1"))
    assert page.lead == "é"


@pytest.fixture(scope="module")
def crawl(shared_data) -> bytes:
    return (shared_data / "web" / "example.warc.gz").read_bytes()


@pytest.mark.slow
@pytest.mark.integration
def test_real_crawl(shared_data, crawl):
    found = list(read(shared_data / "web" / "example.warc.gz"))
    reasons = Counter(item.reason for item in found if isinstance(item, Dropped))
    pages = [item for item in found if isinstance(item, Page)]
    # Counted by hand in the uncompressed file, without a WARC parser.
    plain = gzip.decompress(crawl)
    kinds = Counter(re.findall(rb"^WARC-Type: (\w+)\r$", plain, re.MULTILINE))
    assert sum(kinds.values()) == 822
    assert reasons["record that is not a response (request, metadata, ...)"] == (
        kinds[b"request"] + kinds[b"metadata"] + kinds[b"warcinfo"]
    )
    answers = re.findall(
        rb"^HTTP/1\.[01] (\d+)[^\r]*\r\n((?:[^\r\n]+\r\n)*)\r\n", plain, re.MULTILINE
    )
    html = Counter(
        int(status)
        for status, head in answers
        if re.search(rb"(?i)^content-type: *text/html", head, re.MULTILINE)
    )
    assert html == {200: 94, 404: 40, 302: 5, 301: 1}
    assert len(pages) == 92
    # Two pages lead on by <meta http-equiv=refresh>.
    assert sum(isinstance(item, Redirect) for item in found) == 5 + 2 + 2
    assert reasons["response of status 404"] == 40
    assert all(page.domain in ("archive.org", "deadlists.com") for page in pages)
    links = [link for page in pages for section in page.sections for link in section.body.links]
    assert len(links) > 25_000
    in_prose = sum(len(section.body.links) for page in pages for section in page.content)
    assert in_prose < 0.03 * len(links)


@pytest.mark.integration
def test_truncated_crawl(crawl):
    with pytest.raises(HarpError, match=r"^x\.warc\.gz, byte \d+: the record is truncated"):
        read_bytes(crawl[: len(crawl) // 10], "x.warc.gz")


def test_damaged_crawl(crawl):
    middle = len(crawl) // 5
    damaged = crawl[:middle] + bytes(byte ^ 0xFF for byte in crawl[middle : middle + 9])
    with pytest.raises(HarpError, match=r"^x\.warc\.gz, byte \d+: (this|the) record"):
        read_bytes(damaged + crawl[middle + 9 :], "x.warc.gz")
    with pytest.raises(HarpError, match="damaged"):
        items(response().replace(b"Content-Length: ", b"Content-Length: x"))


@given(st.binary(max_size=200), st.integers(0, 300), st.integers(0, 300))
def test_any_damage_is_an_error_or_a_drop(junk, start, end):
    data = response() + response(url="http://a.b/")
    data = data[:start] + junk + data[start + end :]
    for content in (data, b"".join(map(gzip.compress, (data, data)))[: -end or None]):
        try:
            found = read_bytes(content, "x.warc", "warc")
        except HarpError as error:
            assert "x.warc" in str(error) and "\n" not in str(error)
        else:
            assert all(isinstance(item, Page | Redirect | Dropped) for item in found)
