"""Turns the blocks of a page into its sections: the lead, the others, and the boilerplate."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from resiliparse.parse.lang import detect_fast

from ...text import words
from ..boilerplate import boilerplate_sections
from ..markup import LinkedText, joined
from ..pages import SEE_ALSO_HEADINGS, Page, Section
from .blocks import Block, BlockWriter
from .document import Document
from .rules import HtmlRules

__all__ = ["MIN_LEAD_WORDS", "read_page"]

_REGIONS = ("header", "hatnote", "navigation", "aside", "footer")
_LANGUAGE_SAMPLE = 4000
_LATIN_DISTANCE, _OTHER_DISTANCE = 600, 1200
_MIN_CHARACTERS = 300
_MAX_WORDS_BEFORE_TITLE = 100
_END_OF_NAME = re.compile(r"\s*(?:$|[:|·•«»–—]|-\s)")
MIN_LEAD_WORDS = 20
"""A lead of fewer words also takes the text of the sections that follow."""


def read_page(key: str, document: Document, rules: HtmlRules) -> Page:
    """Separate the content of a page from boilerplate, and cut it into sections.

    The lead is the text under the title heading of the page, or the text before the first heading.
    Where this text has fewer than 20 words (a tag line or a date), the lead also takes the text of
    the sections that follow. The first heading that does not name the site is the title if it is
    the only ``<h1>``, if ``<title>`` says the same, or if the page starts with it and no other
    heading has its level.
    The levels of the other headings count from 2. Links under a heading "See also" are the see-also
    links of the page. Where a page has a main part, everything outside of it is boilerplate.

    Args:
        key: the key of the page.
        document: the parsed page.
        rules: the rules for this kind of HTML.
    """
    page = Page(key, document.title or key, [], is_web=rules.is_web)
    if document.body is None:
        return page
    writer = BlockWriter(rules, page.drops)
    blocks = writer.walk(document.body)
    _mark_outside_of_main(blocks, writer.main)
    content = [block for block in blocks if block.region is None]
    title = _title_heading(content, document.title) if rules.is_web else None
    if title is not None:
        page.title = content[title].body.text
        page.drops["link in a heading"] += len(content[title].body.links)
        for block in content[:title]:
            block.region = "header"
        content = content[title + 1 :]
    _add_sections(page, content, rules)
    _add_boilerplate(page, blocks)
    page.language = document.language or _language(page.sections)
    page.drops = +page.drops
    return page


def _mark_outside_of_main(blocks: list[Block], main: tuple[int, int] | None) -> None:
    if main is None or not any(block.region is None for block in blocks[slice(*main)]):
        return
    for region, outside in (("header", blocks[: main[0]]), ("footer", blocks[main[1] :])):
        for block in outside:
            block.region = block.region or region


def _title_heading(content: list[Block], title: str) -> int | None:
    """Return the number of the block that is the title of the page, if there is one."""
    headings = [n for n, block in enumerate(content) if block.heading and not block.menu]
    if not headings or _words_of(content[: headings[0]]) > _MAX_WORDS_BEFORE_TITLE:
        return None
    first = _first_title(content, headings, title)
    level, text = content[first].heading, content[first].body.text
    other_levels = [content[n].heading for n in headings if n > first]
    is_only = level < min(other_levels, default=7) and (level == 1 or not first)
    return first if is_only or _same_title(title, text) else None


def _first_title(content: list[Block], headings: list[int], title: str) -> int:
    """Return the number of the first heading, or of one below it where the first names the site.

    The name of a site stands at the other end of ``<title>`` than the title of the page. A first
    heading with which ``<title>`` does not begin is a slogan or the like where ``<title>`` begins
    with a later one, and, if it is a link, where the next one has no lower level.
    """
    first, *later = headings
    name = content[first].body
    if _begins(name.text, title):
        return first
    near = []
    for n in later[:2]:
        is_higher = content[n].heading < content[first].heading
        most = _MAX_WORDS_BEFORE_TITLE if is_higher else MIN_LEAD_WORDS
        if _words_of(content[first + 1 : n]) <= most:
            near.append(n)
    if _begins(title, name.text):
        named = [n for n in near if _begins(title[::-1], content[n].body.text[::-1])]
    else:
        named = [n for n in near if _begins(title, content[n].body.text)]
        if any((link.start, link.end) == (0, len(name.text)) for link in name.links):
            level = content[first].heading
            others = (n for n in near[:1] if not content[n].body.links)
            named += [n for n in others if content[n].heading <= level]
    return named[0] if named else first


def _begins(title: str, name: str) -> bool:
    """Return whether a title is a name, or one with more behind a sign, such as a dash."""
    start, rest = title[: len(name)], title[len(name) :]
    return bool(name) and start.lower() == name.lower() and bool(_END_OF_NAME.match(rest))


def _words_of(blocks: list[Block]) -> int:
    return sum(block.body.text.count(" ") + 1 for block in blocks)


def _same_title(title: str, heading: str) -> bool:
    """Return whether the words of a title contain the words of a heading, or the reverse."""
    title, heading = (f" {' '.join(words(text.lower()))} " for text in (title, heading))
    return bool(title.strip() and heading.strip()) and (heading in title or title in heading)


def _add_sections(page: Page, content: list[Block], rules: HtmlRules) -> None:
    for level, title, blocks in _split_sections(page, content, rules.is_web):
        if title.lower().strip(" :") in SEE_ALSO_HEADINGS:
            page.add_see_also(joined(block.body for block in blocks))
            continue
        for block in blocks:
            if block.menu and rules.is_web:
                block.region = "navigation"
        body = joined(block.body for block in blocks if block.region is None)
        _clean(body, rules, page.drops)
        page.sections.append(Section(level, title, body))
    if rules.is_web:
        _lengthen_lead(page.sections)


def _lengthen_lead(sections: list[Section]) -> None:
    """Move the texts of sections into the lead until it has 20 words; their headings stay."""
    lead, *following = sections
    bodies, count = [lead.body], len(words(lead.body.text))
    marks = boilerplate_sections(following, is_web=True)
    for section, boilerplate in zip(following, marks, strict=True):
        if section.body.text and count < MIN_LEAD_WORDS and not boilerplate:
            bodies.append(section.body)
            count += len(words(section.body.text))
            section.body = LinkedText("", [])
    lead.body = joined(body for body in bodies if body.text)


def _clean(body: LinkedText, rules: HtmlRules, drops: Counter[str]) -> None:
    count = len(body.links)
    for pattern, replacement in rules.cleanup:
        body.substitute(pattern, replacement)
    body.remove_inexact_links()
    drops["link lost in clean-up"] += count - len(body.links)


def _split_sections(
    page: Page, content: list[Block], is_web: bool
) -> Iterator[tuple[int, str, list[Block]]]:
    """Give the level, the heading and the blocks of each section."""
    top = min((block.heading for block in content if block.heading), default=1)
    level, title = 1, ""
    section: list[Block] = []
    for block in content:
        if block.heading and not (block.menu and is_web):
            yield level, title, section
            level, title, section = block.heading - top + 2, block.body.text, []
            page.drops["link in a heading"] += len(block.body.links)
        elif block.body.text:
            section.append(block)
    yield level, title, section


def _add_boilerplate(page: Page, blocks: list[Block]) -> None:
    for region in _REGIONS:
        bodies = [b.body for b in blocks if b.region == region and b.body.links]
        if bodies:
            page.sections.append(Section(1, "", joined(bodies), region))


def _language(sections: list[Section]) -> str:
    """Detect the language of a page that declares none; English where the text is too short."""
    sample = " ".join(s.body.text for s in sections if s.region is None)[:_LANGUAGE_SAMPLE].lower()
    if len(sample) < _MIN_CHARACTERS:
        return "en"
    is_latin = len(sample.encode("ascii", "ignore")) > len(sample) / 2
    language, _ = detect_fast(sample, cutoff=_LATIN_DISTANCE if is_latin else _OTHER_DISTANCE)
    return "en" if language == "unknown" else language
