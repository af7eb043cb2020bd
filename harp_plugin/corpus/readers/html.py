"""Files of HTML, whose keys are their paths below a folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from ..html import (
    LONG_PAGE,
    MAX_PAGE,
    WebRules,
    decode,
    index_terms,
    is_index,
    read_document,
    read_page,
)
from ..pages import NO_TEXT, Dropped, Item, Page, Redirect
from ..urls import FileAddress, WebAddress
from .source import Source

__all__ = ["MIN_WORDS", "HtmlReader", "looks_like_html", "page_items"]

_PROLOGUE = re.compile(rb"(?:\s+|<!--.*?-->|<\?xml\b[^>]*>)*+", re.DOTALL)
_HTML = re.compile(
    rb"<(?:!doctype\s+html|html|head|script|iframe|h[1-6]|div|font|table|style|title|b|body|br|p|a"
    rb"|meta|link|ul|ol|section|article|main|nav|header)[\s/>]",
    re.IGNORECASE,
)
_XHTML = re.compile(rb"<(?:!doctype\s+html|html)[\s/>]", re.IGNORECASE)
_SUFFIX = re.compile(r"\.[A-Za-z]\w{1,4}$")
_BYTE_ORDER_MARKS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_HOME = re.compile(r"(?:(?:index|default|home)\b[^/]*)?(?:\?.*)?", re.IGNORECASE)
_OF_HOME_PAGE = Dropped("canonical address that is the home page of the site")
MIN_WORDS = 50
"""The fewest words of a page for which the usual names of boilerplate are ignored."""


def looks_like_html(head: bytes) -> bool:
    """Return whether data start as HTML does, by the tags that the MIME sniffing standard names."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if head.startswith(mark):
            head = head.decode(encoding, "replace").encode()
    head = head.removeprefix(b"\xef\xbb\xbf")
    prologue = _PROLOGUE.match(head)
    start = prologue.end() if prologue else 0
    is_xml = b"<?xml" in head[:start]
    return (_XHTML if is_xml else _HTML).match(head, start) is not None


def page_items(
    html: str, address_of: Callable[[str | None], FileAddress | WebAddress]
) -> Iterator[Item]:
    """Give the page at an address, the redirect from its canonical address, and index terms.

    The terms are those of an index on the page (DocBook, Sphinx, Texinfo), which is navigation.

    For a page that leads on at once (meta refresh), this is one redirect. A canonical address that
    is the home page of a site, as on all pages of some sites, counts for home pages only. Where the
    usual names of boilerplate leave no text of a page of 50 words or more, these names are ignored.

    Args:
        html: the text of the page.
        address_of: makes its address of the ``href`` of its ``<base>`` element.
    """
    document = read_document(html)
    if isinstance(document, Dropped):
        yield document
        return
    address = address_of(document.base)
    if document.refresh:
        target = address.resolve(document.refresh)
        if not isinstance(target, Dropped):
            yield Redirect(address.key, target)
            return
    terms = index_terms(document, address.resolve)
    is_navigation = is_index if terms else None
    rules = WebRules(address, is_navigation=is_navigation)
    page = read_page(address.key, document, rules)
    if rules.used_names and not any(section.body.text for section in page.content):
        rules = WebRules(address, by_name=False, is_navigation=is_navigation)
        whole_page = read_page(address.key, document, rules)
        page = whole_page if (whole_page.word_count or 0) >= MIN_WORDS else page
    if not any(section.body.text for section in page.sections):
        yield NO_TEXT
        return
    canonical = address.resolve(document.canonical) if document.canonical else None
    if isinstance(canonical, str):
        is_wrong = _claims_home_page(canonical, address.key)
        yield _OF_HOME_PAGE if is_wrong else Redirect(canonical, address.key)
    yield from terms
    yield page


def _claims_home_page(canonical: str, key: str) -> bool:
    """Return whether the canonical address of another page is that of the home page of a site."""
    site = canonical.partition("://")[2].removesuffix("/")
    web = key.partition("://")[2]
    path = web.partition("/")[2] if web else key.rpartition(f"{site}/")[2]
    return bool(site) and "/" not in site and _HOME.fullmatch(path) is None


class HtmlReader:
    """Reads HTML files; each is a page, and its key is the path of the file.

    Links between the files name pages by their paths, and links to other sites by canonical URLs.
    The ``rel=canonical`` address of a page becomes a redirect to the page. A reference without a
    suffix names a file with the suffix ``.html``, or the index of a folder.
    """

    def recognizes(self, source: Source) -> bool:
        """Return whether the source starts as HTML does."""
        return looks_like_html(source.head)

    def records(self, source: Source) -> Iterator[tuple[str, bytes] | Dropped]:
        """Read the whole file."""
        with source.open() as file:
            data = file.read(MAX_PAGE + 1)
        yield LONG_PAGE if len(data) > MAX_PAGE else (source.name, data)

    def parse(self, record: tuple[str, bytes]) -> Iterable[Item]:
        """Parse the page."""
        name, data = record
        for item in page_items(decode(data), partial(_Address, name)):
            yield item
            if isinstance(item, Page):
                stem = re.sub(r"\.html?$", "", item.key)
                names = {f"{stem}.html", f"{stem.removesuffix('/index')}.html"}
                names.update([stem] if _SUFFIX.search(stem) else [])
                yield from (Redirect(key, item.key) for key in sorted(names - {item.key}))


class _Address(FileAddress):
    """The path of an HTML file, on whose site addresses may leave out ``.html``."""

    def resolve(self, reference: str) -> str | Dropped:
        """See `FileAddress`."""
        key = super().resolve(reference)
        is_page = isinstance(key, str) and "://" not in key and not _SUFFIX.search(key)
        return f"{key}.html" if is_page else key
