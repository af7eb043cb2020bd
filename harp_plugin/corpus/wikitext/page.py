"""Parses the wikitext of one page into sections of clean text with links.

The parser is mwparserfromhell. This module walks its tree once, keeps the prose, and leaves out
templates, tables, references, files and categories.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import unescape
from itertools import takewhile
from typing import Any

import mwparserfromhell
from mwparserfromhell import nodes

from ...text import normalize_title, without_surrogates
from ..boilerplate import kind_of_wikitext
from ..markup import Link, LinkedText
from ..pages import HATNOTE, Page, Section
from ..sentences import remove_sentences
from ..word_lists import NAMES
from .cleanup import LESS_THAN, clean_anchor, clean_prose
from .lines import (
    INTERLANGUAGE,
    MARK,
    PLAIN_LINK,
    keep_apostrophes,
    put_back,
    set_aside,
    take_hatnotes,
    without_bullets,
    without_interlanguage,
)
from .prose import VERBATIM_TAGS, prose_only
from .templates import HOLE, expanded, leaves_hole

__all__ = [
    "CANONICAL_NAMESPACES",
    "DEBRIS",
    "MEDIA_NAMESPACES",
    "Site",
    "parse_page",
    "wiki_language",
]

_WIKITEXT = NAMES["wikitext"]
CANONICAL_NAMESPACES = frozenset(_WIKITEXT["namespaces"])
"""English names of the namespaces that hold no articles, in lower case."""
MEDIA_NAMESPACES = frozenset(_WIKITEXT["media_namespaces"])
"""Those of them whose links show no text."""

_PROSE_TAGS = frozenset(_WIKITEXT["prose_tags"])
_BLOCK_TAGS = frozenset(_WIKITEXT["block_tags"])
_INTERWIKI = re.compile("|".join(_WIKITEXT["interwiki"]))
_MARKUP = re.compile(r"[\[\]{}<>&]")
_BRACKETED_LINK = re.compile(r"\[(\[\[[^\[\]]*\]\])\]")
_HOLES = "sentence in which a template that is not known left a hole"
DEBRIS = re.compile(r"\[\[|\]\]|\{\{|\}\}|\{\||\|\}|</?ref|\|thumb|" + HOLE, re.IGNORECASE)
"""Matches marks that remain in the text where the wikitext is malformed."""


@dataclass(frozen=True, slots=True)
class Site:
    """The settings of a wiki that parsing depends on.

    Attributes:
        namespaces: lower-case names of the namespaces that hold no articles.
        media: those of them whose links show no text (files and categories).
        first_letter: whether the first letter of a title is always a capital letter.
        language: the language code.
    """

    namespaces: frozenset[str] = CANONICAL_NAMESPACES
    media: frozenset[str] = MEDIA_NAMESPACES
    first_letter: bool = True
    language: str = "en"


def wiki_language(code: str) -> str:
    """Return the language code of a wiki by its code; a wiki without a code counts as English.

    The code of a wiki is its language code, but the Simple English Wikipedia has ``simple``.
    """
    return "en" if code in ("", "simple") else code


def parse_page(title: str, wikitext: str, site: Site) -> Page:
    """Parse the wikitext of one page.

    Every link of every section satisfies ``text[link.start:link.end] == link.anchor``; a link that
    no longer does after the clean-up is dropped and counted.

    Args:
        title: the title of the page as the dump writes it.
        wikitext: the text of the page.
        site: the settings of its wiki.
    """
    page = Page(
        normalize_title(title, first_letter=site.first_letter),
        title,
        [],
        language=site.language,
        kind=kind_of_wikitext(wikitext),
        debris=DEBRIS,
    )
    whole, wikitext = wikitext, without_interlanguage(wikitext)
    page.drops[INTERLANGUAGE] += wikitext != whole
    wikitext = _BRACKETED_LINK.sub(r"\1", keep_apostrophes(prose_only(wikitext)))
    wikitext, hatnotes = take_hatnotes(wikitext)
    marked, plain_lines = set_aside(wikitext)
    code = mwparserfromhell.parse(marked, skip_style_tags=True)
    for level, heading, section in _split_sections(code):
        writer = _Writer(title, site, page.drops, plain_lines)
        writer.walk(section)
        page.add_section(level, heading, writer.finish())
    if hatnotes:
        page.drops[HATNOTE] += hatnotes.count("\n") + 1
        writer = _Writer(title, site, page.drops, [])
        writer.walk(mwparserfromhell.parse(hatnotes, skip_style_tags=True).nodes)
        page.sections.append(Section(1, "", writer.finish(), HATNOTE))
    return page


def _split_sections(code: mwparserfromhell.wikicode.Wikicode) -> Iterator[tuple[int, str, list]]:
    """Give the level, the heading and the nodes of each section."""
    level, title = 1, ""
    section: list[Any] = []
    for node in code.nodes:
        if isinstance(node, nodes.Heading):
            yield level, title, section
            level, title, section = node.level, _heading(node), []
        else:
            section.append(node)
    yield level, title, section


def _heading(node: nodes.Heading) -> str:
    return " ".join(re.sub("'{2,}", "", node.title.strip_code()).split())


class _Writer:
    """Walks the nodes of a section and writes the text that a reader sees, with its links.

    Args:
        title: the title of the page.
        site: the settings of the wiki.
        drops: the counter of reasons.
        plain_lines: the lines that marks in the text stand for.
    """

    def __init__(self, title: str, site: Site, drops: Counter[str], plain_lines: list[str]) -> None:
        self.title = title
        self.site = site
        self.drops = drops
        self.plain_lines = plain_lines
        self.pieces: list[str] = []
        self.length = 0
        self.links: list[Link] = []
        self.takes_trail = False  # letters that follow belong to the last link

    def walk(self, children: Iterable[Any]) -> None:
        """Write nodes and what is below them."""
        for node in children:
            if isinstance(node, nodes.Text):
                self._marked_text(str(node.value))
                continue
            self.takes_trail = False
            if isinstance(node, nodes.Wikilink):
                self._wikilink(str(node.title), node.text)
            elif isinstance(node, nodes.Tag):
                self._tag(node)
            elif isinstance(node, nodes.HTMLEntity):
                self._write(without_surrogates(node.normalize()).replace("<", LESS_THAN))
            elif isinstance(node, nodes.ExternalLink):
                if node.brackets and node.title is not None:
                    self.walk(node.title.nodes)
            elif isinstance(node, nodes.Template):
                self._template(node)

    def finish(self) -> LinkedText:
        """Return the section's text after the clean-up."""
        body = LinkedText("".join(self.pieces), self.links)
        clean_prose(body)
        if HOLE in body.text:
            self.drops[_HOLES] += remove_sentences(body, HOLE, self.site.language)
        body.shrink_links()
        body.remove_inexact_links()
        self.drops["link lost in clean-up"] += len(self.links) - len(body.links)
        return body

    def _write(self, text: str) -> None:
        self.pieces.append(text)
        self.length += len(text)

    def _text(self, text: str) -> None:
        if self.takes_trail:
            self.takes_trail = False
            trail = "".join(takewhile(str.islower, text))
            link = self.links[-1]
            self.links[-1] = link._replace(end=link.end + len(trail), anchor=link.anchor + trail)
        self._write(text)

    def _marked_text(self, text: str) -> None:
        position = 0
        for mark in MARK.finditer(text):
            self._text(text[position : mark.start()])
            self._plain_lines(without_bullets(self.plain_lines[int(mark[1])]))
            position = mark.end()
        self._text(text[position:])

    def _plain_lines(self, lines: str) -> None:
        position = 0
        for link in PLAIN_LINK.finditer(lines):
            self._text(lines[position : link.start()])
            self.takes_trail = False
            self._wikilink(*link.groups())
            position = link.end()
        self._text(lines[position:])

    def _wikilink(self, title: str, text: Any) -> None:
        """Write a link; ``text`` is a string, Wikicode, or None where the title is shown."""
        target = _subpage(self.title, title.strip())
        title = title.strip().strip("/") if title.strip().endswith("/") else title
        prefix, colon, name = target.removeprefix(":").partition(":")
        is_interwiki = self._names_wiki(prefix, name)
        prefix = prefix.strip().replace("_", " ").lower()
        shown = text
        if text is None:
            shown = target[1:] if target.startswith(":") else title
            if _MARKUP.search(shown):
                shown = mwparserfromhell.parse(shown, skip_style_tags=True)
        if colon and prefix in self.site.media and not target.startswith(":"):
            self.drops["file or category"] += 1
        elif colon and is_interwiki:
            self.drops["link to another wiki"] += 1
            if target.startswith(":") or text is not None:
                self._show(shown)
        elif colon and prefix in self.site.namespaces:
            self.drops["link to another namespace"] += 1
            self._show(shown)
        else:
            self._link(normalize_title(target, first_letter=self.site.first_letter), shown)

    def _show(self, shown: Any) -> None:
        if isinstance(shown, str):
            self._text(shown)
        else:
            self.walk(shown.nodes)

    def _names_wiki(self, prefix: str, name: str) -> bool:
        """Return whether the prefix of a link names another wiki.

        The prefixes of titles such as ``CSI: Miami`` and ``Re:Zero`` do not.
        """
        if (len(prefix) <= 3 and not prefix.islower()) or name.startswith((" ", "_")):
            return False
        prefix = prefix.strip().lower()
        return prefix not in self.site.namespaces and _INTERWIKI.fullmatch(prefix) is not None

    def _link(self, target: str, shown: Any) -> None:
        start, links, pieces = self.length, len(self.links), len(self.pieces)
        self._show(shown)
        self.takes_trail = False
        text = "".join(self.pieces[pieces:]).replace("\n", " ")
        self.pieces[pieces:] = [text]
        if len(self.links) > links:
            self.drops["link inside a link"] += len(self.links) - links
            del self.links[links:]
        anchor = clean_anchor(text)
        if not target:
            self.drops["link inside the page"] += 1
        elif not anchor:
            self.drops["empty anchor text"] += 1
        else:
            self.links.append(Link(start, self.length, anchor, target))
            self.takes_trail = True

    def _tag(self, node: nodes.Tag) -> None:
        name = str(node.tag).strip().lower()
        if node.wiki_markup in ("*", "#", ":", ";"):
            return
        if name in ("br", "hr"):
            self._write("\n")
        elif name in VERBATIM_TAGS and node.contents is not None:
            text = put_back(str(node.contents), self.plain_lines)
            self._write(unescape(text).replace("<", LESS_THAN))
        elif name in _PROSE_TAGS and node.contents is not None:
            around = "\n" if name in _BLOCK_TAGS else ""
            self._write(around)
            self.walk(node.contents.nodes)
            self._write(around)
            self.takes_trail = False

    def _template(self, node: nodes.Template) -> None:
        arguments = {str(part.name).strip(): str(part.value) for part in node.params}
        shown = expanded(str(node.name).strip(), arguments)
        if shown is not None:
            self.walk(mwparserfromhell.parse(shown, skip_style_tags=True).nodes)
        elif leaves_hole(str(node.name), "".join(self.pieces[-3:])[-20:]):
            self._write(HOLE)


def _subpage(page: str, title: str) -> str:
    """Return the title that a link to a subpage or to the page above names."""
    if title.startswith("/"):
        return f"{page}{title}".rstrip("/")
    if not title.startswith("../"):
        return title
    while title.startswith("../") and "/" in page:
        page, title = page.rpartition("/")[0], title[3:]
    return f"{page}/{title}".rstrip("/") if not title.startswith("../") else title
