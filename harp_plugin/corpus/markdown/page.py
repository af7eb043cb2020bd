"""Turns a Markdown file into a page, its other names and its index terms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from urllib.parse import unquote

from ..html import Attributes, WebRules, read_document, read_page
from ..pages import NO_TEXT, Dropped, IndexTerm, Item, Redirect
from ..urls import INSIDE
from .address import XREF, MarkdownAddress
from .front_matter import FrontMatter, split_front_matter
from .parser import PAGE, parse, render

__all__ = ["BROKEN_FRONT_MATTER", "MarkdownRules", "markdown_items"]

BROKEN_FRONT_MATTER = "front matter that cannot be read (its page is kept)"


class MarkdownRules(WebRules):
    """Rules for HTML that was Markdown: as for web pages, but the rows of tables are text."""

    keeps_tables = True

    def target(self, attributes: Attributes) -> str | Dropped:
        """See `HtmlRules`."""
        reference = attributes.get("href") or ""
        if not reference.startswith(PAGE):
            return super().target(attributes)
        key = unquote(reference.removeprefix(PAGE))
        return INSIDE if key == self.address.key else key


def markdown_items(
    text: str, address: MarkdownAddress, pages: Mapping[str, str] | None = None
) -> Iterator[Item]:
    """Give the page of a Markdown file, the redirects to it and its index terms.

    The title is the heading of level 1 with which the page starts, else that of the front matter,
    else the name of the file. A file that names the page to which it leads on is a redirect.

    Args:
        text: the content of the file.
        address: its address.
        pages: the keys of pages by the names that wiki links have for them.
    """
    front_matter, markdown = split_front_matter(text)
    if front_matter.target:
        target = address.resolve(front_matter.target)
        yield target if isinstance(target, Dropped) else Redirect(address.key, target)
        return
    title = front_matter.title or _title_of_name(address.name)
    tokens = parse(markdown, pages)
    html = render(tokens)
    first = next((token.tag for token in tokens if token.type != "html_block"), "")
    if front_matter.title and first != "h1":
        html = f"<h1>{escape(title)}</h1>\n{html}"
    document = read_document(html)
    if isinstance(document, Dropped):
        yield document
        return
    document.title, document.language = title, front_matter.language
    page = read_page(address.key, document, MarkdownRules(address))
    page.drops[BROKEN_FRONT_MATTER] += front_matter.is_broken
    if not any(section.body.text for section in page.sections):
        yield NO_TEXT
        return
    yield from _names(front_matter, address)
    yield from (IndexTerm(term, address.key) for term in front_matter.index_terms)
    yield page


def _names(front_matter: FrontMatter, address: MarkdownAddress) -> Iterator[Redirect]:
    """Give the redirects from other names of a page."""
    resolved = map(address.resolve, front_matter.former_addresses)
    names = [*address.other_keys(), *(key for key in resolved if isinstance(key, str))]
    names += front_matter.other_names
    if front_matter.uid:
        names.append(XREF + front_matter.uid)
    yield from (Redirect(name, address.key) for name in dict.fromkeys(names))


def _title_of_name(name: str) -> str:
    if " " in name:
        return name
    words = name.replace("-", " ").replace("_", " ").strip() or name
    return words[:1].upper() + words[1:] if words.islower() else words
