"""Wikitext becomes sections of clean text with the links' exact places.

Parsing is mwparserfromhell's; this module walks its tree once, keeps what a reader of the page
would see as prose, and leaves out templates, tables, references, files and categories.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import mwparserfromhell
from mwparserfromhell import nodes

from ..text import normalise_title, without_surrogates
from .cleanup import clean_up, cleaned
from .markup import Link, LinkedText
from .page_kinds import kind_of_wikitext
from .pages import Page, Section
from .plain_lines import MARKED, PLAIN_LINK, put_back, set_aside, without_bullets
from .quotes import keep_apostrophes
from .unseen import TEXT_TEMPLATES, without_unseen

SEE_ALSO = frozenset(
    {"see also", "related pages", "other pages"}
    | {"tan-awa usab", "tan-awa sab", "tan-awa"}
    | {"siehe auch", "voir aussi", "articles connexes", "se även", "se också", "zie ook"}
    | {"véase también", "vea también", "см. также", "смотри также", "voci correlate"}
    | {"zobacz też", "zobacz także", "شوف كمان", "بص كمان", "انظر أيضا", "انظر أيضًا"}
    | {"参见", "參見", "参看", "參看", "相关条目", "相關條目", "関連項目"}
    | {"див. також", "xem thêm", "ver também", "جستارهای وابسته", "vegeu també"}
)
"""Headings of see-also sections, lower-cased, in the languages of the largest Wikipedias."""

CANONICAL_NAMESPACES = frozenset(
    {"media", "special", "talk", "user", "wikipedia", "project", "file", "image", "mediawiki"}
    | {"template", "help", "category", "portal", "book", "draft", "module", "timedtext", "topic"}
)
UNSEEN_NAMESPACES = frozenset({"file", "image", "category", "media"})
_PROSE_TAGS = frozenset(
    {"a", "abbr", "b", "big", "blockquote", "center", "cite", "code", "del", "dfn", "div", "em"}
    | {"font", "i", "ins", "kbd", "li", "mark", "ol", "p", "q", "s", "samp", "small", "span"}
    | {"strike", "strong", "sub", "sup", "tt", "u", "ul", "var", "noinclude", "onlyinclude"}
)
_PLAIN_TAGS = frozenset({"nowiki", "poem"})
_INTERWIKI = re.compile(
    r"^(?:[a-z]{2,3}|simple|be-tarask|be-x-old|zh-[a-z-]+|roa-[a-z-]+|map-bms|bat-smg|fiu-vro|"
    r"nds-nl|cbk-zam|wikt|wiktionary|commons|meta|wikisource|wikiquote|wikibooks|wikinews|"
    r"wikiversity|wikivoyage|wikispecies|wikidata|mediawikiwiki|mw|species|incubator|"
    r"s|q|b|n|v|d|c|m|w)$"
)
_MARKUP = re.compile(r"[\[\]{}<>&]")
_BRACKETED_LINK = re.compile(r"\[(\[\[[^\[\]]*\]\])\]")
DEBRIS = re.compile(r"\[\[|\]\]|\{\{|\}\}|\{\||\|\}|</?ref|\|thumb", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Site:
    """What a wiki says of itself.

    Attributes:
        namespaces: lower-cased names of the namespaces that hold no articles.
        hidden: those of them whose links show no text (files, categories).
        first_letter: titles start upper-case.
        language: its language code.
    """

    namespaces: frozenset[str] = CANONICAL_NAMESPACES
    hidden: frozenset[str] = UNSEEN_NAMESPACES
    first_letter: bool = True
    language: str = "en"


def parse_page(title: str, wikitext: str, site: Site) -> Page:
    """Parse one page's wikitext.

    Every link of every section satisfies ``text[link.start:link.end] == link.anchor``; a link that
    does not after clean-up is dropped and counted.
    """
    page = Page(
        normalise_title(title, first_letter=site.first_letter),
        title,
        [],
        language=site.language,
        kind=kind_of_wikitext(wikitext),
        debris=DEBRIS,
    )
    wikitext = _BRACKETED_LINK.sub(r"\1", keep_apostrophes(without_unseen(wikitext)))
    marked, plain = set_aside(wikitext)
    above = 0  # level of the see-also heading, as long as sections stand below it
    for level, heading, section in _split(mwparserfromhell.parse(marked, skip_style_tags=True)):
        writer = _Writer(site, page.drops, plain)
        writer.walk(section)
        body = writer.finish()
        if heading.lower() in SEE_ALSO:
            above = level
        elif level <= above:
            above = 0
        if above:
            page.see_also += (link.target for link in body.links)
        else:
            page.sections.append(Section(level, heading, body))
    page.see_also = list(dict.fromkeys(page.see_also))
    return page


def _split(code) -> Iterator[tuple[int, str, list]]:
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
    """Walks nodes and writes what a reader sees, with links."""

    def __init__(self, site: Site, drops: Counter[str], plain: list[str]) -> None:
        self.site = site
        self.drops = drops
        self.plain = plain
        self.pieces: list[str] = []
        self.length = 0
        self.links: list[Link] = []
        self.open_trail = False

    def walk(self, children) -> None:
        for node in children:
            if isinstance(node, nodes.Text):
                self._marked_text(str(node.value))
                continue
            self.open_trail = False
            if isinstance(node, nodes.Wikilink):
                self._parsed_link(node)
            elif isinstance(node, nodes.Tag):
                self._tag(node)
            elif isinstance(node, nodes.HTMLEntity):
                self._write(_entity(node))
            elif isinstance(node, nodes.ExternalLink):
                self._external_link(node)
            elif isinstance(node, nodes.Template):
                self._template(node)

    def finish(self) -> LinkedText:
        body = LinkedText("".join(self.pieces), self.links)
        clean_up(body)
        body.shrink_links()
        exact = [link for link in body.links if body.text[link.start : link.end] == link.anchor]
        self.drops["link lost in clean-up"] += len(self.links) - len(exact)
        body.links = exact
        return body

    def _write(self, text: str) -> None:
        self.pieces.append(text)
        self.length += len(text)

    def _text(self, text: str) -> None:
        if self.open_trail:
            self.open_trail = False
            trail = "".join(takewhile(str.islower, text))
            last = self.links[-1]
            self.links[-1] = Link(
                last.start, last.end + len(trail), last.anchor + trail, last.target
            )
        self._write(text)

    def _marked_text(self, text: str) -> None:
        position = 0
        for mark in MARKED.finditer(text):
            self._text(text[position : mark.start()])
            self._plain_lines(without_bullets(self.plain[int(mark[1])]))
            position = mark.end()
        self._text(text[position:])

    def _plain_lines(self, lines: str) -> None:
        position = 0
        for link in PLAIN_LINK.finditer(lines):
            self._text(lines[position : link.start()])
            self.open_trail = False
            self._wikilink(*link.groups())
            position = link.end()
        self._text(lines[position:])

    def _parsed_link(self, node: nodes.Wikilink) -> None:
        self._wikilink(str(node.title), node.text)

    def _wikilink(self, title: str, text: Any) -> None:
        """Write a link; ``text`` is a string, Wikicode, or None where the title is shown."""
        written = title.strip()
        prefix, colon, name = written.removeprefix(":").partition(":")
        elsewhere = self._names_wiki(prefix, name)
        prefix = prefix.strip().replace("_", " ").lower()
        shown = text
        if text is None:
            shown = written[1:] if written.startswith(":") else title
            if _MARKUP.search(shown):
                shown = mwparserfromhell.parse(shown, skip_style_tags=True)
        if colon and prefix in self.site.hidden and not written.startswith(":"):
            self.drops["file or category"] += 1
        elif colon and elsewhere:
            self.drops["link to another wiki"] += 1
            if written.startswith(":") or text is not None:
                self._show(shown)
        elif colon and prefix in self.site.namespaces:
            self.drops["link to another namespace"] += 1
            self._show(shown)
        else:
            self._link(normalise_title(written, first_letter=self.site.first_letter), shown)

    def _show(self, shown: Any) -> None:
        if isinstance(shown, str):
            self._text(shown)
        else:
            self.walk(shown.nodes)

    def _names_wiki(self, prefix: str, name: str) -> bool:
        """Whether a link's prefix names another wiki, unlike ``CSI: Miami`` and ``Re:Zero``."""
        if (len(prefix) <= 3 and not prefix.islower()) or name.startswith((" ", "_")):
            return False
        prefix = prefix.strip().lower()
        return prefix not in self.site.namespaces and bool(_INTERWIKI.match(prefix))

    def _link(self, target: str, shown) -> None:
        start, inner, mark = self.length, len(self.links), len(self.pieces)
        self._show(shown)
        self.open_trail = False
        text = "".join(self.pieces[mark:]).replace("\n", " ")
        self.pieces[mark:] = [text]
        if len(self.links) > inner:
            self.drops["link inside a link"] += len(self.links) - inner
            del self.links[inner:]
        anchor = cleaned(text)
        if not target:
            self.drops["link inside the page"] += 1
        elif not anchor:
            self.drops["empty anchor text"] += 1
        else:
            self.links.append(Link(start, self.length, anchor, target))
            self.open_trail = True

    def _tag(self, node: nodes.Tag) -> None:
        name = str(node.tag).strip().lower()
        if node.wiki_markup in ("*", "#", ":", ";"):
            return
        if name in ("br", "hr"):
            self._write("\n")
        elif name in _PLAIN_TAGS and node.contents is not None:
            self._write(put_back(str(node.contents), self.plain))
        elif name in _PROSE_TAGS and node.contents is not None:
            self.walk(node.contents.nodes)
            self.open_trail = False

    def _external_link(self, node: nodes.ExternalLink) -> None:
        if node.brackets and node.title is not None:
            self.walk(node.title.nodes)

    def _template(self, node: nodes.Template) -> None:
        name = str(node.name).strip().lower().partition("-")[0]
        if name in TEXT_TEMPLATES:
            shown = [parameter for parameter in node.params if not parameter.showkey]
            if shown:
                self.walk(shown[TEXT_TEMPLATES[name]].value.nodes)


def _entity(node: nodes.HTMLEntity) -> str:
    try:
        return without_surrogates(node.normalize())
    except ValueError:
        return ""
