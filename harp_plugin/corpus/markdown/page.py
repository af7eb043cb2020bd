"""Turns a Markdown file into a page, its other names and its index terms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise, takewhile

from markdown_it.token import Token

from ..html import Attributes, WebRules, read_document, read_page
from ..markup import LinkedText
from ..pages import NO_TEXT, WITH_SITE_ROOT, Dropped, IndexTerm, Item, Redirect
from .address import XREF, MarkdownAddress
from .front_matter import FrontMatter, split_front_matter
from .parser import parse, render
from .plain import plain_markdown

__all__ = ["BROKEN_FRONT_MATTER", "MarkdownRules", "markdown_items"]

BROKEN_FRONT_MATTER = "front matter that cannot be read (its page is kept)"


class MarkdownRules(WebRules):
    """Rules for HTML that was Markdown: as for web pages, but the rows of tables are text.

    Attributes:
        missing: the keys of links that would have a page by another `--site-root`, with that.
    """

    keeps_tables = True

    def __init__(self, address: MarkdownAddress) -> None:
        super().__init__(address)
        self.site = address.site
        self.missing: dict[str, str] = {}

    def target(self, attributes: Attributes) -> str | Dropped:
        """See `HtmlRules`."""
        target = super().target(attributes)
        is_absolute = (attributes["href"] or "").startswith(("/", "http://", "https://"))
        if is_absolute and isinstance(target, str) and (root := self.site.site_root_for(target)):
            self.missing[target] = root
        return target


def markdown_items(text: str, address: MarkdownAddress) -> Iterator[Item]:
    """Give the page of a Markdown file, the redirects to it and its index terms.

    The title is the heading of level 1 with which the page starts, else that of the front matter,
    else the name of the file if it has spaces, as that of a note, else the heading of any level
    with which the page starts, else its first heading of level 1, else the name of the file. A file
    that names the page to which it leads on is a redirect. A page of Hugo without text, as one of
    code alone, has the description in its front matter for text, which themes of Hugo show.

    Args:
        text: the content of the file.
        address: its address.
    """
    front_matter, markdown = split_front_matter(text)
    if reference := front_matter.text("redirect_url", "redirect_to"):
        target = address.resolve(reference)
        yield target if isinstance(target, Dropped) else Redirect(address.key, target)
        return
    drops: Counter[str] = Counter()
    is_mdx = address.site.dialect.expressions or address.key.lower().endswith(".mdx")
    markdown = plain_markdown(markdown, address, drops, is_mdx=is_mdx)
    tokens = parse(markdown, address.is_page, is_mdx=is_mdx)
    name = _title_of_name(address.name)
    is_note = " " in address.name or address.site.layout.name == "obsidian"
    written = front_matter.text("title") or (name if is_note else "")
    tokens = tokens if written else _with_title_first(tokens)
    html = render(tokens)
    first = next((token for token in tokens if token.type != "html_block"), None)
    title = written or _heading(tokens, first) or name
    if title == name and "<h1" not in html and _starts_with_text(tokens):
        written = name
    if written and (first is None or first.tag != "h1"):
        html = f"<h1>{escape(title)}</h1>\n{html}"
    document = read_document(html)
    if isinstance(document, Dropped):
        yield document
        return
    starts_with_heading = first is not None and first.type == "heading_open"
    document.title = title if written or starts_with_heading else name
    document.language = front_matter.language
    rules = MarkdownRules(address)
    page = read_page(address.key, document, rules)
    page.title = title if page.title == document.title else page.title
    page.drops.update(drops)
    links = (link for part in page.sections if not part.region for link in part.body.links)
    roots = (rules.missing[link.target] for link in links if link.target in rules.missing)
    page.drops.update(f"{WITH_SITE_ROOT}{root}" for root in roots)
    page.drops[BROKEN_FRONT_MATTER] += front_matter.is_broken
    if not any(section.body.text for section in page.sections):
        description = front_matter.text("description")
        if not description or address.site.layout.name != "hugo":
            yield NO_TEXT
            return
        page.sections[0].body = LinkedText(" ".join(description.replace("`", "").split()), [])
    yield from _names(front_matter, address)
    yield from (IndexTerm(term, address.key) for term in front_matter.index_terms)
    yield page


def _names(front_matter: FrontMatter, address: MarkdownAddress) -> Iterator[Redirect]:
    """Give the redirects from other names of a page."""
    as_written = MarkdownAddress(address.key, address.roots)
    resolved = map(as_written.resolve, front_matter.former_addresses)
    names = [*address.other_keys(), *(key for key in resolved if isinstance(key, str))]
    names += front_matter.other_names
    names += [XREF + uid for uid in [front_matter.text("uid")] if uid]
    yield from (Redirect(name, address.key) for name in dict.fromkeys(names))


def _with_title_first(tokens: list[Token]) -> list[Token]:
    """Put the first heading of level 1 before the text above it, which is a part of the lead."""
    place = next((n for n, token in enumerate(tokens) if token.type == "heading_open"), 0)
    is_title = bool(place) and tokens[place].tag == "h1" and not tokens[place].level
    is_title &= not any("<h1" in token.content.lower() for token in tokens[:place])
    end = place + 3 * is_title
    return [*tokens[place:end], *tokens[:place], *tokens[end:]]


def _starts_with_text(tokens: Sequence[Token]) -> bool:
    """Return whether words stand before the first heading."""
    above = takewhile(lambda token: token.type != "heading_open", tokens)
    parts = (part for token in above for part in token.children or ())
    return any(part.type == "text" and part.content.strip() for part in parts)


def _heading(tokens: Sequence[Token], first: Token | None) -> str:
    """Return the words of the heading that is the first token, or else of the first of level 1."""
    headings = (pair for pair in pairwise(tokens) if pair[0].type == "heading_open")
    inline = next((inner for token, inner in headings if token is first or token.tag == "h1"), None)
    children = (inline.children if inline else None) or []
    return " ".join("".join(c.content or " " * (c.type == "softbreak") for c in children).split())


def _title_of_name(name: str) -> str:
    if " " in name:
        return name
    words = name.replace("-", " ").replace("_", " ").strip() or name
    return words[:1].upper() + words[1:] if words.islower() else words
