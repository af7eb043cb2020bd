"""Addresses: one spelling each, and what links refer to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harp_plugin.corpus.pages import Dropped
from harp_plugin.corpus.urls import (
    BROKEN,
    INSIDE,
    NO_PAGE,
    OUTSIDE,
    FileAddress,
    WebAddress,
    canonical_url,
    registrable_domain,
)


@pytest.mark.parametrize(
    "written",
    [
        "HTTP://Example.COM:80/a/../%7euser/./caf%c3%a9?q=1&p#top",
        "http://user:secret@example.com/~user/café?q=1&p",
        " http://example.com/%7Eu%73er/caf%C3%A9?q=1&p ",
    ],
)
def test_one_spelling(written):
    assert canonical_url(written) == "http://example.com/~user/caf%C3%A9?q=1&p"


def test_reserved_escapes_stay():
    assert canonical_url("http://a.b/x%2fy%3fz?") == "http://a.b/x%2Fy%3Fz"
    assert canonical_url("http://Bücher.example") == "http://xn--bcher-kva.example/"


@pytest.mark.parametrize(
    "written", ["", "x.html", "ftp://a.b/", "http://", "http://[1/", "a" * 9999]
)
def test_no_web_address(written):
    assert canonical_url(written) is None


@given(st.text())
def test_canonical_urls_are_fixed_points(path):
    url = canonical_url(f"http://example.com/{path}")
    assert url is not None and canonical_url(url) == url and "#" not in url


@pytest.mark.parametrize(
    ("url", "domain"),
    [
        ("http://news.bbc.co.uk/x", "bbc.co.uk"),
        ("https://someone.github.io/", "someone.github.io"),
        ("http://www.archive.org:8080/", "archive.org"),
        ("http://127.0.0.1:80/", "127.0.0.1"),
        ("http://localhost/", "localhost"),
        ("x.html", None),
        ("http://[1/", None),
    ],
)
def test_registrable_domain(url, domain):
    assert registrable_domain(url) == domain


@pytest.mark.parametrize(
    ("reference", "key"),
    [
        ("b.html", "docs/b.html"),
        ("b.html#part", "docs/b.html"),
        ("b.html?highlight=x", "docs/b.html"),
        ("../top.html", "top.html"),
        ("./", "docs/index.html"),
        ("sub/", "docs/sub/index.html"),
        ("/b.html", "b.html"),
        ("caf%C3%A9 1.html", "docs/café 1.html"),
        ("b.html.gz", "docs/b.html"),
        ("\n b.html ", "docs/b.html"),
        ("//Example.com/x", "http://example.com/x"),
        ("#part", INSIDE),
        ("a.html#part", INSIDE),
        ("", INSIDE),
        ("../../up.html", OUTSIDE),
        ("MailTo:a@b.c", NO_PAGE),
        ("javascript:void(0)", NO_PAGE),
        ("data:text/html,x", NO_PAGE),
        ("http://[1/", BROKEN),
    ],
)
def test_references_between_files(reference, key):
    assert FileAddress("docs/a.html").resolve(reference) == key


def test_base():
    assert FileAddress("docs/a.html", "../other/").resolve("b.html") == "other/b.html"
    assert FileAddress("a.html", "https://a.b/c/").resolve("d") == "https://a.b/c/d"
    assert WebAddress("http://a.b/c/d", "/e/").resolve("f") == "http://a.b/e/f"
    assert WebAddress("http://a.b/c/d", "x:y").resolve("f") == "http://a.b/c/f"


def test_references_on_the_web():
    address = WebAddress("http://A.b/c/d?x#y")
    assert address.key == "http://a.b/c/d?x"
    assert address.resolve("?z") == "http://a.b/c/d?z"
    assert address.resolve("?x") == INSIDE
    assert address.resolve("tel:+1") == NO_PAGE


@given(st.text(), st.text())
def test_any_reference_resolves_or_is_dropped(path, reference):
    for address in (FileAddress(path or "x"), WebAddress(f"http://a.b/{path}")):
        found = address.resolve(reference)
        assert isinstance(found, str | Dropped) and found != address.key
