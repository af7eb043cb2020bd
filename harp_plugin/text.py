"""What a word is, and how anchor texts and titles are normalised: once, in Python, when read."""

from __future__ import annotations

import html
import re
import unicodedata
from urllib.parse import unquote

WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_SPACE = re.compile(r"\s+")
_ENTITY = re.compile(r"&(?:#\d+|#[xX][0-9a-fA-F]+|[a-zA-Z][a-zA-Z0-9]*);")
_SURROGATE = re.compile("[\ud800-\udfff]")
_DIRECTION_MARKS = re.compile("[\u200e\u200f\u202a-\u202e]+")


def words(text: str) -> list[str]:
    """The words of a text: runs of letters and digits, an apostrophe inside allowed."""
    return WORD.findall(text)


def without_surrogates(text: str) -> str:
    """Replace halves of surrogate pairs, which no file of UTF-8 can hold, by U+FFFD each."""
    return _SURROGATE.sub("\ufffd", text)


def normalise_anchor(text: str) -> str:
    """Normalise an anchor text, so that two spellings of one anchor compare equal.

    Unicode NFKC, lower case, single spaces, no punctuation at either end.
    """
    text = _SPACE.sub(" ", unicodedata.normalize("NFKC", text)).lower().strip()
    start, end = 0, len(text)
    while start < end and not text[start].isalnum():
        start += 1
    while end > start and not text[end - 1].isalnum():
        end -= 1
    return text[start:end] or text


def normalise_title(title: str, *, first_letter: bool = True) -> str:
    """Normalise a page title or link target as MediaWiki does.

    Decodes HTML entities and percent escapes, drops the fragment and a leading colon, folds
    underscores and white space, and upper-cases the first letter.

    Args:
        title: a title as written in a link or a dump.
        first_letter: the site's ``<case>`` is ``first-letter`` (true for every Wikipedia).

    Returns:
        The title, or an empty string for a link inside a page such as ``#History``.
    """
    if "&" in title:
        title = _ENTITY.sub(lambda entity: html.unescape(entity[0]), title)
    if "%" in title:
        title = unquote(title, errors="strict") if _is_utf8_escaped(title) else title
    title = _DIRECTION_MARKS.sub("", title.partition("#")[0].replace("_", " "))
    title = _SPACE.sub(" ", unicodedata.normalize("NFC", title)).strip().removeprefix(":").strip()
    if first_letter and title and len(title[0].upper()) == 1:
        title = title[0].upper() + title[1:]
    return title


def _is_utf8_escaped(title: str) -> bool:
    try:
        unquote(title, errors="strict")
    except UnicodeDecodeError:
        return False
    return True
