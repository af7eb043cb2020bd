"""Blocks of a page become its sections: the lead, the tree below it, and the boilerplate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from resiliparse.parse.lang import detect_fast

from ...text import words
from ..markup import LinkedText, joined
from ..pages import Page, Section
from ..wikitext import SEE_ALSO
from .blocks import Block, BlockWriter
from .document import Document
from .rules import Rules

_REGIONS = ("header", "navigation", "aside", "footer")
_LANGUAGE_SAMPLE = 4000
_LATIN_DISTANCE, _OTHER_DISTANCE = 600, 1200
_FEWEST_CHARACTERS = 300
_MOST_WORDS_BEFORE_TITLE = 100
FEWEST_LEAD_WORDS = 20
"""A lead of fewer words goes on with the sections that follow."""


def read_page(key: str, document: Document, rules: Rules) -> Page:
    """Tell a page's content from boilerplate, and cut it into sections.

    The lead is the text under the page's title heading, or before the first heading; where that is
    less than 20 words, such as a tag line or a date, with that of the sections that follow. The
    first heading is the page's title if it is the only ``<h1>``, if ``<title>`` says the same, or
    if the page starts with it and no other is of its level. Levels of the others count from 2.
    Links under a heading "See also" are the page's see-also links. Where a page has a main part,
    all that stands outside of it is boilerplate.
    """
    page = Page(key, document.title or key, [])
    if document.body is None:
        return page
    writer = BlockWriter(rules, page.drops)
    blocks = writer.walk(document.body)
    _leave_main(blocks, writer.main)
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


def _leave_main(blocks: list[Block], main: tuple[int, int] | None) -> None:
    if main is None or not any(block.region is None for block in blocks[slice(*main)]):
        return
    for region, outside in (("header", blocks[: main[0]]), ("footer", blocks[main[1] :])):
        for block in outside:
            block.region = block.region or region


def _title_heading(content: list[Block], title: str) -> int | None:
    """Place of the heading that is the page's title, if one is."""
    headings = [n for n, block in enumerate(content) if block.heading and not block.menu]
    if not headings:
        return None
    first = headings[0]
    level, text = content[first].heading, content[first].body.text
    if sum(block.body.text.count(" ") + 1 for block in content[:first]) > _MOST_WORDS_BEFORE_TITLE:
        return None
    others = [content[n].heading for n in headings[1:]]
    is_only = level < min(others, default=7) and (level == 1 or not first)
    return first if is_only or _says(title, text) else None


def _says(title: str, heading: str) -> bool:
    said, found = (" ".join(words(text.lower())) for text in (title, heading))
    return bool(said and found) and (f" {found} " in f" {said} " or f" {said} " in f" {found} ")


def _add_sections(page: Page, content: list[Block], rules: Rules) -> None:
    for level, title, blocks in _split(page, content, rules.is_web):
        if title.lower().strip(" :") in SEE_ALSO:
            targets = (link.target for block in blocks for link in block.body.links)
            page.see_also += targets
            continue
        for block in blocks:
            if block.menu and rules.is_web:
                block.region = "navigation"
        body = joined(block.body for block in blocks if block.region is None)
        _clean(body, rules, page.drops)
        page.sections.append(Section(level, title, body))
    page.see_also = list(dict.fromkeys(page.see_also))
    if rules.is_web:
        _lengthen_lead(page.sections)


def _lengthen_lead(sections: list[Section]) -> None:
    lead, *others = sections
    bodies, count = [lead.body], len(words(lead.body.text))
    kept = [lead]
    for section in others:
        if section.body.text and count < FEWEST_LEAD_WORDS:
            bodies.append(section.body)
            count += len(words(section.body.text))
        else:
            kept.append(section)
    lead.body = joined(body for body in bodies if body.text)
    sections[:] = kept


def _clean(body: LinkedText, rules: Rules, drops: Counter[str]) -> None:
    links = body.links
    for pattern, replacement in rules.cleanup:
        body.substitute(pattern, replacement)
    body.links = [link for link in body.links if body.text[link.start : link.end] == link.anchor]
    drops["link lost in clean-up"] += len(links) - len(body.links)


def _split(
    page: Page, content: list[Block], is_web: bool
) -> Iterator[tuple[int, str, list[Block]]]:
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
        found = [block for block in blocks if block.region == region and block.body.links]
        if found:
            bodies = (block.body for block in found)
            page.sections.append(Section(1, "", joined(bodies), region))


def _language(sections: list[Section]) -> str:
    """Language of a page that does not say its own; English where that cannot be told."""
    sample = " ".join(s.body.text for s in sections if s.region is None)[:_LANGUAGE_SAMPLE].lower()
    if len(sample) < _FEWEST_CHARACTERS:
        return "en"
    is_latin = len(sample.encode("ascii", "ignore")) > len(sample) / 2
    found, _ = detect_fast(sample, cutoff=_LATIN_DISTANCE if is_latin else _OTHER_DISTANCE)
    return "en" if found == "unknown" else found
