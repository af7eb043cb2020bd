"""Removes from prose what parsing leaves behind: marks, empty brackets, white space."""

from __future__ import annotations

import re
from collections import Counter

from ..markup import LinkedText

__all__ = [
    "EMPTY_BRACKETS",
    "LESS_THAN",
    "OPENING_BRACKET",
    "clean_anchor",
    "clean_paragraph",
    "clean_prose",
]

# The mark in the place of a "<" that a reader sees, while tags are removed.
LESS_THAN = "\ue0f1"

EMPTY_BRACKETS = re.compile(r" ?\([\s,;:]*\)")
OPENING_BRACKET = re.compile(r"\([\s,;:]+")
"""An opening bracket with the punctuation of something that was removed behind it."""
_VARIANTS = re.compile(
    r"-\{(?:\s*[HT-]\s*\|[^{}]*+()"
    r"|(?:[^{}|]*+\|)?(?:\s*[a-z-]+\s*:([^{};]*+)[^{}]*+|([^{}\x00-\x7f][^{}]*+)))\}-"
)
"""A word in several scripts, such as ``-{zh-hans:电子;zh-hant:電子}-``, or a rule for words."""
_INVISIBLE = re.compile(r"[\u200b\u200e\u200f\ufeff\x00-\x08\x0b-\x1f\x7f]")
_PROSE: tuple[tuple[tuple[str, ...], re.Pattern[str], str], ...] = (
    (
        ("</ref", "</REF", "</Ref", "/>"),
        re.compile(r"<ref\b[^<>]*/>|<ref\b[^<>]*>.*?</ref\s*>", re.DOTALL | re.IGNORECASE),
        "",
    ),
    (("|}",), re.compile(r"\{\|.*?\|\}", re.DOTALL), ""),
    (("{{",), re.compile(r"\{\{[^{}]*\}\}"), ""),
    (("<",), re.compile(r"</?(?:p|li|div|blockquote)\b[^<>\n]{0,300}>", re.IGNORECASE), " "),
    (("<", "__"), re.compile(r"</?[a-zA-Z][^<>\n]{0,300}>|__[A-Z]+__"), ""),
    (("''''",), re.compile(r"(?<!')'{4}(?!')"), "'"),
    (("''",), re.compile(r"''+"), ""),
    ((), _INVISIBLE, ""),
    (("(",), re.compile(r"\([\s,;:]*\)"), ""),
    ((), re.compile(r"[^\S\n ]+"), " "),
    (("  ",), re.compile(r"  +"), " "),
    (("( ", "(,", "(;", "(:", "(\n"), OPENING_BRACKET, "("),
    ((" ,", " ."), re.compile(r" (?=[,.](?:\s|$))"), ""),
    ((" \n",), re.compile(r" \n"), "\n"),
    (("\n ", "\n\n"), re.compile(r"\n[ \n]+"), "\n"),
    ((LESS_THAN,), re.compile(LESS_THAN), "<"),
)
"""The steps of `clean_prose` in order: marks of which one must be there, pattern, replacement."""
_ENDS = re.compile(r"\A\s+|\s+\Z")
_NEEDS_CLEANING = re.compile(
    r"[^\S ]|[<{}|\x00-\x1f\x7f\u200b\u200e\u200f\ufeff\ue0f1()]|__|''|  | [,.]|\A | \Z"
)
"""Matches wherever a step of `clean_prose` can match."""
_PARAGRAPH = (
    (_INVISIBLE, ""),
    (re.compile(r"\s{2,}|[^\S ]"), " "),
    (EMPTY_BRACKETS, ""),
    (re.compile(r"\A | \Z"), ""),
)


def clean_prose(body: LinkedText) -> None:
    """Remove what a parser of wikitext left behind; the links move with their words.

    Of a word in several scripts, the first one stays.
    """
    if "-{" in body.text:
        words = ((m, m.span(m.lastindex or 0)) for m in _VARIANTS.finditer(body.text))
        body.replace((s for m, (a, z) in words for s in ((m.start(), a), (z, m.end()))), "")
    for marks, pattern, replacement in _PROSE:
        if not marks or any(mark in body.text for mark in marks):
            body.substitute(pattern, replacement)
    if body.text != body.text.strip():
        body.substitute(_ENDS, "")


def clean_anchor(text: str) -> str:
    """Return an anchor text as `clean_prose` leaves it."""
    if not _NEEDS_CLEANING.search(text):
        return text
    body = LinkedText(text, [])
    clean_prose(body)
    return body.text


def clean_paragraph(paragraph: LinkedText, drops: Counter[str]) -> None:
    """Write a paragraph on one line, and set the anchor texts of its links.

    Invisible characters and empty brackets are removed, and white space becomes single spaces.

    Args:
        paragraph: text that holds no markup, and links without anchor texts.
        drops: the counter of reasons, for links without a text.
    """
    count = len(paragraph.links)
    for pattern, replacement in _PARAGRAPH:
        paragraph.substitute(pattern, replacement)
    paragraph.shrink_links()
    paragraph.links = [
        link._replace(anchor=paragraph.text[link.start : link.end]) for link in paragraph.links
    ]
    drops["empty anchor text"] += count - len(paragraph.links)
