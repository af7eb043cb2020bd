"""Recognizes what is not text of its own, by headings, first words of lines, templates and titles.

These are lists of references; hatnotes, which are lines at the start of a section that lead to
another page, such as "For other uses, see ..."; and pages that only lead to other pages:
disambiguation pages and lists. A page about all bearers of a name (a surname, ships of one name) is
a set index, which Wikipedia counts among the lists. The words are those of `languages.toml`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from ..text import words
from .markup import LinkedText
from .pages import HATNOTE, Page, Section
from .word_lists import LANGUAGES, all_words

__all__ = [
    "DISAMBIGUATION",
    "LIST",
    "REFERENCES",
    "boilerplate_sections",
    "kind_of_page",
    "kind_of_wikitext",
    "set_hatnotes_apart",
]

REFERENCES = "references"
"""The region of links in sections with a heading of boilerplate."""

DISAMBIGUATION = "disambiguation"
LIST = "list"

_HEADINGS = frozenset(all_words("references"))
_WIKI_HEADINGS = _HEADINGS | frozenset(all_words("references_in_wikis"))
_LONGEST = 400
_LONGEST_WITHOUT_LINK = 150
_HATNOTE = re.compile("|".join(all_words("hatnotes")), re.IGNORECASE)
_DISAMBIGUATION_TEMPLATES = frozenset(all_words("disambiguation_templates"))
_LIST_TEMPLATES = frozenset(all_words("list_templates"))
_DISAMBIGUATION_TITLE = re.compile(
    rf"\((?:{'|'.join(all_words('disambiguation_titles'))})\)$", re.IGNORECASE
)
_LIST_TITLE = re.compile("|".join(all_words("list_titles")))
_LIST_TITLE_BY_LANGUAGE = {
    language: re.compile("|".join(patterns))
    for language, patterns in LANGUAGES["list_titles_of_language"].items()
}
_MAGIC_WORD = "__DISAMBIG__"
_HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)|<nowiki>.*?(?:</nowiki>|\Z)|\{\{\{[^{}]*\}\}\}", re.DOTALL)
_TEMPLATE = re.compile(r"\{\{\s*([^|{}\[\]<>#\n]+)")


def boilerplate_sections(sections: Iterable[Section], *, is_web: bool = False) -> list[bool]:
    """Return which sections are boilerplate: its heading says so, or the heading of one above it.

    Args:
        sections: the sections of a page in order.
        is_web: whether the page may be any web page, where "Notes" is a heading of text.
    """
    headings = _HEADINGS if is_web else _WIKI_HEADINGS
    marks: list[bool] = []
    level = 0  # above 0 in a section of boilerplate and in the sections below it
    for section in sections:
        if section.level <= level:
            level = 0
        if not level and section.title.strip(" :").lower() in headings:
            level = section.level
        marks.append(level > 0)
    return marks


def set_hatnotes_apart(page: Page) -> None:
    """Move the hatnotes at the starts of sections to a section of their own.

    Its region is `HATNOTE`, so that their links are stored with this region.
    """
    hatnotes: list[Section] = []
    for section in page.content:
        size = sum(len(line) + 1 for line in _hatnotes(section.body))
        if size:
            page.drops[HATNOTE] += 1
            body = section.body
            hatnotes.append(Section(1, "", body.part(0, size - 1), HATNOTE))
            section.body = body.part(size, len(body.text))
    page.sections += hatnotes


def _hatnotes(body: LinkedText) -> Iterator[str]:
    """Give the lines at the start of a text that are hatnotes."""
    position = 0
    for line in body.text.split("\n"):
        if len(line) > _LONGEST or not _HATNOTE.match(line):
            return
        end = position + len(line)
        last = max((link.end for link in body.links if position < link.end <= end), default=0)
        if words(body.text[last:end]) if last else len(line) > _LONGEST_WITHOUT_LINK:
            return
        yield line
        position = end + 1


def kind_of_page(title: str, language: str = "en", text_kind: str | None = None) -> str | None:
    """Return the kind of a page: ``"disambiguation"``, ``"list"`` or None.

    Args:
        title: the title of the page as a reader sees it.
        language: its language code.
        text_kind: the kind that its text tells, such as `kind_of_wikitext`.
    """
    title = unicodedata.normalize("NFKC", title).strip()
    if text_kind == DISAMBIGUATION or _DISAMBIGUATION_TITLE.search(title):
        return DISAMBIGUATION
    pattern = _LIST_TITLE_BY_LANGUAGE.get(language, _LIST_TITLE)
    return LIST if _LIST_TITLE.match(title) or pattern.match(title) else text_kind


def kind_of_wikitext(wikitext: str) -> str | None:
    """Return the kind that the magic word and the names of templates tell, or None."""
    kind = _kind_of_marks(wikitext)
    return _kind_of_marks(_HIDDEN.sub("", wikitext)) if kind else None


def _kind_of_marks(wikitext: str) -> str | None:
    names = {name.replace("_", " ").strip().lower() for name in _TEMPLATE.findall(wikitext)}
    if _MAGIC_WORD in wikitext or any(map(_disambiguates, names)):
        return DISAMBIGUATION
    return None if names.isdisjoint(_LIST_TEMPLATES) else LIST


def _disambiguates(name: str) -> bool:
    return name in _DISAMBIGUATION_TEMPLATES or name.endswith(" disambiguation")
