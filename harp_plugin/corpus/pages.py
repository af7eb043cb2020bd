"""What a reader gives: pages, redirects, and what was dropped with its reason."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from ..text import words
from .markup import LinkedText


@dataclass(slots=True)
class Section:
    """One section of a page. The lead has level 1 and an empty title.

    Lines of ``body.text`` are paragraphs; links never cross a line. ``region`` is None for the
    page's content; boilerplate says where it stands: ``header``, ``footer``, ``navigation`` or
    ``aside``. Of boilerplate only the links are kept, with their region.
    """

    level: int
    title: str
    body: LinkedText
    region: str | None = None


@dataclass(slots=True)
class Page:
    """A page of the corpus.

    Attributes:
        key: its normalised title or URL, by which links name it.
        title: its title as shown.
        sections: in order, the lead first.
        see_also: keys of the pages under its see-also heading.
        drops: why links were left out, with counts.
        whole: whether the source holds the whole page; ``min_words`` judges whole pages only.
        split: whether paragraphs still have to be split into sentences.
        language: code for the sentence splitter.
        domain: the registrable domain of a web page.
        kind: ``disambiguation`` or ``list`` where the source says so by more than the title.
        debris: matches marks of markup that could not be parsed, if the source has any: such marks
            are taken out, and a linked sentence with one is dropped.
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
    debris: re.Pattern[str] | None = None

    @property
    def content(self) -> list[Section]:
        """The sections that are no boilerplate."""
        return [section for section in self.sections if section.region is None]

    @property
    def lead(self) -> str:
        """Text of the first section; empty where the page starts with a heading."""
        first = self.content[:1]
        return first[0].body.text if first and first[0].level == 1 else ""

    @property
    def word_count(self) -> int | None:
        """Words in all sections, or None where the source does not hold the whole page."""
        return sum(len(words(s.body.text)) for s in self.content) if self.whole else None


@dataclass(frozen=True, slots=True)
class Redirect:
    """A title that stands for another page."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """A record that is no page, with the reason that the manifest counts."""

    reason: str


Item = Page | Redirect | Dropped
