"""Words of a text, and the normalized forms of anchor texts and titles.

Texts are normalized once, when they are read: an engine's own functions for texts would differ.
"""

from __future__ import annotations

import html
import re
import unicodedata
from urllib.parse import unquote

import regex

__all__ = [
    "WORD",
    "normalize_anchor",
    "normalize_title",
    "title_anchors",
    "without_surrogates",
    "words",
]

_UNSPACED = r"[[\p{L}\p{Nl}]&&[\p{Han}\p{Hiragana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]]"
_LETTER = rf"[[\p{{L}}\p{{N}}]--{_UNSPACED}]"
_PART = rf"[[\p{{L}}\p{{M}}\p{{N}}]--{_UNSPACED}]"
_JOINER = "['’\u00ad\u200c\u200d]"
WORD = regex.compile(
    r"[a-zA-Z0-9]++(?!['\x80-\U0010ffff])"  # for speed: the next line finds these as well
    rf"|(?:(?<!\p{{M}})\p{{M}}++)?+{_LETTER}{_PART}*+(?:{_JOINER}{_PART}++)*+"
    rf"|{_UNSPACED}\p{{M}}*+",
    regex.V1,
)
"""A word is a run of letters, combining marks and digits (Unicode categories L, M and N).

It holds a letter or a digit at least. An apostrophe, a soft hyphen, a zero-width joiner or
non-joiner inside it belongs to it. In scripts that write no spaces between words (Han, Hiragana,
Thai, Lao, Khmer, Myanmar), each letter with its marks is a word.
"""
_INSIDE = regex.compile(r"[\p{L}\p{N}](?:.*[\p{L}\p{M}\p{N}])?", regex.DOTALL)
_SPACE = re.compile(r"\s+")
_ENTITY = re.compile(r"&(?:#\d+|#[xX][0-9a-fA-F]+|[a-zA-Z][a-zA-Z0-9]*);")
_SURROGATE = re.compile("[\ud800-\udfff]")
_DIRECTION_MARKS = re.compile("[\u200e\u200f\u202a-\u202e]+")


def words(text: str) -> list[str]:
    """Return the words of a text (see `WORD`)."""
    return WORD.findall(text)


def without_surrogates(text: str) -> str:
    """Replace each half of a surrogate pair, which UTF-8 cannot write, by U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def normalize_anchor(text: str) -> str:
    """Normalize an anchor text, so that two spellings of the same anchor compare equal.

    The result is in Unicode NFKC and lower case, with single spaces and without punctuation at
    either end.
    """
    text = _SPACE.sub(" ", unicodedata.normalize("NFKC", text)).lower().strip()
    inside = _INSIDE.search(text)
    return inside[0] if inside else text


def normalize_title(title: str, *, first_letter: bool = True) -> str:
    """Normalize a page title or link target as MediaWiki does.

    This decodes HTML entities and percent escapes, removes the fragment and a leading colon, turns
    underscores and white space into single spaces, and makes the first letter a capital.

    Args:
        title: a title as a link or a dump writes it.
        first_letter: whether the first letter of a title is always a capital letter, as in every
            Wikipedia (``<case>first-letter</case>`` in a dump).

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


def title_anchors(title: str) -> list[str]:
    """Return the anchor texts that repeat a title, normalized.

    These are the title itself, and the title without a "(disambiguator)" at its end.
    """
    title = unicodedata.normalize("NFKC", title).strip()
    start = title.rfind("(")
    whole = normalize_anchor(title)
    if start < 1 or title.find(")", start) != len(title) - 1:
        return [whole]
    return list(dict.fromkeys([whole, normalize_anchor(title[:start])]))


def _is_utf8_escaped(title: str) -> bool:
    try:
        unquote(title, errors="strict")
    except UnicodeDecodeError:
        return False
    return True
