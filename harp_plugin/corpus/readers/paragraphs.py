"""Paragraphs with links, cleaned and put together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from ..markup import Link, LinkedText, joined

_CLEANUP = (
    (re.compile(r"[\u200b\u200e\u200f\ufeff\x00-\x08\x0b-\x1f\x7f]"), ""),
    (re.compile(r"\s{2,}|[^\S ]"), " "),
    (re.compile(r" ?\([\s,;:]*\)"), ""),
    (re.compile(r"\A | \Z"), ""),
)


def clean(paragraph: LinkedText, drops: Counter[str]) -> None:
    """Make it one line without unseen characters and empty brackets; set the anchor texts."""
    links = len(paragraph.links)
    for pattern, replacement in _CLEANUP:
        paragraph.substitute(pattern, replacement)
    paragraph.shrink_links()
    paragraph.links = [
        Link(link.start, link.end, paragraph.text[link.start : link.end], link.target)
        for link in paragraph.links
    ]
    drops["empty anchor text"] += links - len(paragraph.links)


def linked_whole(texts: Iterable[tuple[str, str]]) -> LinkedText:
    """Put each text on a line of its own, each a link to the page named with it."""
    return joined(LinkedText(text, [Link(0, len(text), text, target)]) for text, target in texts)
