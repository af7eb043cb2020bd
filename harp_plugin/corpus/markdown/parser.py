"""Renders Markdown as HTML: CommonMark with tables, alerts, wiki links and other extensions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from urllib.parse import quote, unquote

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from mdit_py_plugins.admon import admon_plugin
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.footnote import footnote_plugin

from ..word_lists import NAMES, kind_by_word
from .address import PAGE, XREF
from .wiki_links import page_name

__all__ = ["parse", "render"]

_ALERT = re.compile(r"\[!(?P<kind>[A-Za-z][\w-]*)(?P<rest>[^\]]*)\][+-]?[ \t]*")
_NAVIGATION = "div"
_WIKI_LINK = re.compile(r"!?\[\[([^\[\]\n]+)\]\](?!\()")
_VALUE = r"(?:[#.][\w:.-]+|[\w:-]+=(?:\"[^\"]*\"|'[^']*'|[^\s\"'{}]+))"
_ATTRIBUTES = re.compile(
    rf"(?<![ \t_^])[ \t]*+\{{:?[ \t]*+{_VALUE}(?:[ \t]++(?:{_VALUE}|d[\w-]+))*+[ \t]*\}}"
)
_TAB = re.compile(r"^([ \t]*)===[!+]?[ \t]+(?=\")", re.MULTILINE)
_PLACE = re.compile(
    r"^([ \t]*(?:!!!|\?\?\?\+?)[ \t]+[\w-]+)(?:[ \t]+(?:inline|end|annotate))+", re.M
)
"""Where a box stands on the page, behind its kind."""
_NO_DEFINITION = re.compile(r"^:[ \t]*\n", re.MULTILINE)
_MARKDOWN = re.compile(
    r"^([ \t]*<\w+[^<>\n]{0,200}?[ \t]markdown\b[^<>\n]{0,200}>)[ \t]*\n(?=[ \t]*\S)", re.M
)
"""A tag whose content is Markdown, without a blank line behind it."""
_RENDERED = kind_by_word("markdown_tokens")
_SIGNS = NAMES["markdown_signs"]
"""By the names of rules: a text that has none of a rule's signs is read without the rule."""


@cache
def _parser(*without: str) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    parser.use(admon_plugin).use(footnote_plugin).use(deflist_plugin)
    parser.inline.ruler.before("link", "wiki_link", _wiki_link)
    parser.core.ruler.push("dialects", _read_dialects)
    for token, html in _RENDERED.items():
        parser.add_render_rule(token, lambda *_, html=html: html)
    return parser.disable(without)


def parse(markdown: str, is_page: Callable[[str], bool], *, is_mdx: bool = False) -> list[Token]:
    """Parse Markdown into tokens.

    Args:
        markdown: the text below the front matter.
        is_page: returns whether wiki links have this name for a page.
        is_mdx: whether lines that are indented are no code, and blocks of HTML hold Markdown.
    """
    markdown = _TAB.sub(r"\1!!! tab ", markdown)
    markdown = _MARKDOWN.sub(r"\1\n\n", _PLACE.sub(r"\1", _NO_DEFINITION.sub("", markdown)))
    without = [rule for rule, signs in _SIGNS.items() if not any(s in markdown for s in signs)]
    without += ["code", "html_block"] * is_mdx
    return _parser(*without).parse(markdown, {"is_page": is_page})


def render(tokens: Sequence[Token]) -> str:
    """Write tokens as HTML."""
    parser = _parser()
    return str(parser.renderer.render(tokens, parser.options, {}))


def _wiki_link(state: StateInline, silent: bool) -> bool:
    """Read ``[[page#heading|text]]``; what ``![[...]]`` shows of another file is left out."""
    match = _WIKI_LINK.match(state.src, state.pos)
    if match is None or state.linkLevel:
        return False
    if not silent and match[0][0] != "!":
        first, _, second = match[1].replace(r"\|", "|").partition("|")
        page, shown = page_name(first), second.strip() or page_name(first) or first.lstrip("#^")
        is_page = state.env["is_page"]
        if second and not is_page(page) and is_page(page_name(second)):
            page, shown = page_name(second), first.strip()
        state.push("link_open", "a", 1).attrs = {"href": f"{PAGE}{quote(page)}" if page else "#"}
        state.push("text", "", 0).content = shown
        state.push("link_close", "a", -1)
    state.pos = match.end()
    return True


def _read_dialects(state: StateCore) -> None:
    """Change the tokens of what extensions of Markdown write as text."""
    for quotation, _, inline in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        if quotation.type == "blockquote_open" and inline.type == "inline":
            _mark_alert(quotation, inline)
    for token, below in pairwise(state.tokens):
        below.hidden |= token.type == "dd_open" and below.type == "paragraph_open"
    for token in state.tokens:
        link: Token | None = None
        for child in token.children or ():
            if child.type == "link_open":
                link = child
            elif child.type == "link_close":
                link = None
            elif child.type == "text":
                if link is not None and link.info == "auto":
                    child.content = _name_of_uid(child.content)
                elif "{" in child.content:
                    child.content = _ATTRIBUTES.sub("", child.content)


def _mark_alert(quotation: Token, inline: Token) -> None:
    """Make a box of a quotation that starts with a mark such as ``[!NOTE]``.

    What stands behind the mark is a title, which ends with its line.

    DocFX writes other blocks in the same way: ``[!div class="nextstepaction"]`` are links to the
    next pages.
    """
    first = inline.children[0] if inline.children else None
    mark = _ALERT.match(first.content) if first is not None and first.type == "text" else None
    if first is not None and mark is not None:
        first.content = first.content[mark.end() :]
        for end in [part for part in inline.children or () if part.tag == "br"][:1]:
            end.type = "hardbreak"
        quotation.attrSet("class", "nav" if mark["kind"] == _NAVIGATION else "note")


def _name_of_uid(text: str) -> str:
    """Return what DocFX shows for ``<xref:uid>``: the last name of the uid, or more of it."""
    if not text.startswith(XREF):
        return text
    uid, _, query = unquote(text.removeprefix(XREF)).partition("?")
    names = re.sub(r"`+\d+|\*$|\(.*", "", uid).split(".")
    number = {"fullName": len(names), "nameWithType": 2}.get(query.rpartition("=")[2], 1)
    return ".".join(names[-number:])
