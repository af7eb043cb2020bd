"""The items that a reader gives: pages, redirects, index terms, and records that were dropped."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from ..text import words
from .markup import LinkedText
from .word_lists import all_words

__all__ = [
    "EMPTY_INDEX",
    "HATNOTE",
    "NO_TEXT",
    "NO_TITLE",
    "SEE_ALSO_HEADINGS",
    "WITH_SITE_ROOT",
    "Dropped",
    "IndexTerm",
    "Item",
    "Page",
    "Redirect",
    "Section",
]

HATNOTE = "hatnote"
"""The region of hatnotes: notes at the start of a section that lead to other pages."""
SEE_ALSO_HEADINGS = frozenset(all_words("see_also"))
"""Headings of see-also sections in lower case, in the languages of the largest Wikipedias."""


@dataclass(slots=True)
class Section:
    """One section of a page.

    Attributes:
        level: the level of its heading; the lead, which has none, has level 1.
        title: its heading; empty for the lead.
        body: its text, in which each line is a paragraph. A link never crosses the end of a line.
        region: None for the content of the page. For boilerplate, the place where it stands:
            ``header``, ``footer``, ``navigation``, ``aside`` or ``hatnote``. Of boilerplate, only
            the links and their region are stored.
    """

    level: int
    title: str
    body: LinkedText
    region: str | None = None


@dataclass(slots=True)
class Page:
    """A page of the corpus.

    Attributes:
        key: its normalized title or URL, by which links name it.
        title: its title as a reader sees it.
        sections: its sections in order, the lead first.
        see_also: the keys of the pages under its see-also heading, each once.
        drops: how many links were dropped, by reason.
        whole: whether the source holds the whole page; ``min_words`` applies to whole pages only.
        split: whether paragraphs still have to be split into sentences.
        language: the language code for the sentence splitter.
        domain: the registrable domain of a web page.
        kind: ``disambiguation`` or ``list`` where more than the title of the page says so.
        is_web: whether it may be any web page: "Notes" is a heading of its text then.
        debris: a pattern for marks of markup that the parser could not read, if the source can have
            such marks. They are removed, and a linked sentence that holds one is dropped.
    """

    key: str
    title: str
    sections: list[Section]
    see_also: list[str] = field(default_factory=list)
    drops: Counter[str] = field(default_factory=Counter)
    whole: bool = True
    split: bool = True
    language: str = "en"
    domain: str | None = None
    kind: str | None = None
    is_web: bool = False
    debris: re.Pattern[str] | None = None
    see_also_level: int = field(default=0, init=False)

    @property
    def content(self) -> list[Section]:
        """The sections that are not boilerplate."""
        return [section for section in self.sections if section.region is None]

    @property
    def lead(self) -> str:
        """The text of the first section; empty where the page starts with a heading."""
        first = self.content[:1]
        return first[0].body.text if first and first[0].level == 1 else ""

    @property
    def word_count(self) -> int | None:
        """The number of words in all sections; None where the source lacks parts of the page."""
        return sum(len(words(s.body.text)) for s in self.content) if self.whole else None

    def add_section(self, level: int, title: str, body: LinkedText) -> None:
        """Add a section; of a see-also section and those below it, add the targets of the links."""
        if title.lower() in SEE_ALSO_HEADINGS:
            self.see_also_level = level
        elif level <= self.see_also_level:
            self.see_also_level = 0
        if self.see_also_level:
            self.add_see_also(body)
        else:
            self.sections.append(Section(level, title, body))

    def add_see_also(self, body: LinkedText) -> None:
        """Add the targets of the links of a see-also section."""
        targets = (link.target for link in body.links)
        self.see_also = list(dict.fromkeys([*self.see_also, *targets]))


@dataclass(frozen=True, slots=True)
class Redirect:
    """A title or an address that stands for another page.

    Attributes:
        source: the key of the redirect.
        target: the key of the page that it leads to.
    """

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class IndexTerm:
    """A term under which an index that people wrote lists a page.

    Attributes:
        term: the term as written, without its mark-up.
        target: the key of the page.
    """

    term: str
    target: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """A record that gives no page, with the reason that the manifest counts."""

    reason: str


NO_TEXT = Dropped("page without text")
NO_TITLE = Dropped("page without title")
EMPTY_INDEX = Dropped("index of which no term leads to a page")

WITH_SITE_ROOT = "link to a missing page (it is kept), found with --site-root "
"""How the reason begins of a link of Markdown that the graph drops; the `--site-root` follows."""

Item = Page | Redirect | IndexTerm | Dropped
