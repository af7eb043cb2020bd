"""Files of HTML, by their paths below a folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..html import MAX_PAGE, Document, WebRules, decode, read_document, read_page
from ..pages import Dropped, Item, Redirect
from ..urls import FileAddress, WebAddress
from .base import READERS
from .source import Source

_PROLOGUE = re.compile(rb"(?:\s+|<!--.*?-->|<\?xml\b[^>]*>)*+", re.DOTALL)
_HTML = re.compile(
    rb"<(?:!doctype\s+html|html|head|script|iframe|h1|div|font|table|style|title|b|body|br|p|a|meta"
    rb"|link)[\s/>]",
    re.IGNORECASE,
)
_XHTML = re.compile(rb"<(?:!doctype\s+html|html)[\s/>]", re.IGNORECASE)
_MARKS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
FEWEST_WORDS = 50
"""Words that a page must have for boilerplate's usual names to be left out of account."""
TOO_LONG = Dropped("page over 8 MiB")


def looks_like_html(head: bytes) -> bool:
    """Whether data starts as HTML does, by the tags that the MIME sniffing standard names."""
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            head = head.decode(encoding, "replace").encode()
    head = head.removeprefix(b"\xef\xbb\xbf")
    prologue = _PROLOGUE.match(head)
    start = prologue.end() if prologue else 0
    is_xml = b"<?xml" in head[:start]
    return (_XHTML if is_xml else _HTML).match(head, start) is not None


def page_items(document: Document, address: FileAddress | WebAddress) -> Iterator[Item]:
    """The page at an address, or the redirect that it is; and one from its canonical address.

    Where the usual names of boilerplate leave nothing of a page of 50 words, they do not count.
    """
    if document.refresh:
        target = address.resolve(document.refresh)
        if not isinstance(target, Dropped):
            yield Redirect(address.key, target)
            return
    rules = WebRules(address)
    page = read_page(address.key, document, rules)
    if rules.named and not any(section.body.text for section in page.content):
        unnamed = read_page(address.key, document, WebRules(address, by_name=False))
        page = unnamed if (unnamed.word_count or 0) >= FEWEST_WORDS else page
    if not any(section.body.text for section in page.sections):
        yield Dropped("page without text")
        return
    canonical = address.resolve(document.canonical) if document.canonical else None
    if isinstance(canonical, str):
        yield Redirect(canonical, address.key)
    yield page


class _File(NamedTuple):
    key: str
    data: bytes


@READERS.register("html")
class HtmlReader:
    """Reads HTML files, one page each; a page's key is the path of its file.

    Links between the files resolve by their paths, those to other sites by canonical URLs. A
    page's ``rel=canonical`` address becomes a redirect to it.
    """

    def recognises(self, source: Source) -> bool:
        """Whether it starts as HTML does."""
        return looks_like_html(source.head)

    def records(self, source: Source) -> Iterator[_File | Dropped]:
        """Read the file whole."""
        with source.open() as file:
            data = file.read(MAX_PAGE + 1)
        yield TOO_LONG if len(data) > MAX_PAGE else _File(source.name, data)

    def parse(self, record: _File) -> Iterable[Item]:
        """Parse the page."""
        document = read_document(decode(record.data))
        if isinstance(document, Dropped):
            yield document
        else:
            yield from page_items(document, FileAddress(record.key, document.base))
