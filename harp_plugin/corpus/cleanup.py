"""What parsing leaves in the prose of wikitext: marks, empty brackets, white space."""

from __future__ import annotations

import re

from .markup import LinkedText

_CLEANUP: tuple[tuple[tuple[str, ...], re.Pattern[str], str], ...] = (
    (
        ("</ref", "</REF", "</Ref", "/>"),
        re.compile(r"<ref\b[^<>]*/>|<ref\b[^<>]*>.*?</ref\s*>", re.DOTALL | re.IGNORECASE),
        "",
    ),
    (("|}",), re.compile(r"\{\|.*?\|\}", re.DOTALL), ""),
    (("{{",), re.compile(r"\{\{[^{}]*\}\}"), ""),
    (("<", "__"), re.compile(r"</?[a-zA-Z][^<>\n]{0,300}>|__[A-Z]+__"), ""),
    (("''''",), re.compile(r"(?<!')'{4}(?!')"), "'"),
    (("''",), re.compile(r"''+"), ""),
    ((), re.compile(r"[\u200b\u200e\u200f\ufeff\x00-\x08\x0b-\x1f\x7f]"), ""),
    (("(",), re.compile(r"\([\s,;:]*\)"), ""),
    ((), re.compile(r"[^\S\n ]+"), " "),
    (("  ",), re.compile(r"  +"), " "),
    (("( ", "(,", "(;", "(:", "(\n"), re.compile(r"\([\s,;:]+"), "("),
    ((" ,", " ."), re.compile(r" (?=[,.](?:\s|$))"), ""),
    ((" \n",), re.compile(r" \n"), "\n"),
    (("\n ", "\n\n"), re.compile(r"\n[ \n]+"), "\n"),
)
"""Marks one of which must be there, what to replace, and by what; in this order."""
_TO_CLEAN = re.compile(
    r"[^\S ]|[<{}|\x00-\x1f\x7f\u200b\u200e\u200f\ufeff()]|__|''|  | [,.]|\A | \Z"
)
"""Whether any pattern of the clean-up can match."""


def clean_up(body: LinkedText) -> None:
    """Take out what is no prose; links keep to their words."""
    for marks, pattern, replacement in _CLEANUP:
        if not marks or any(mark in body.text for mark in marks):
            body.substitute(pattern, replacement)
    body.strip()


def cleaned(text: str) -> str:
    """An anchor text as `clean_up` leaves it."""
    if not _TO_CLEAN.search(text):
        return text
    body = LinkedText(text, [])
    clean_up(body)
    return body.text
