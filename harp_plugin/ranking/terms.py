"""The words of texts as PISA indexes them: folded, stemmed, without stop words in queries.

PISA knows words of ASCII letters and digits alone. So a word of another script is written as a
number, by which it is found.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache
from itertools import pairwise

import regex

__all__ = ["ANALYSIS", "STEMMER", "STOP_WORDS", "content_terms", "plain", "query_terms", "terms"]

STEMMER = "porter2"
STOP_WORDS = "terrier"
ANALYSIS = {"stemmer": STEMMER, "stop words": STOP_WORDS, "analysis": 2}
"""How words are made of texts, as a record gives it: the number grows when `terms` changes."""
_PARTS = re.compile(r"[A-Za-z0-9.']+")
"""No word of PISA's has another character, so that what stands between them ends a word."""
_UNSPACED = (
    r"[ー\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}&&\p{L}]"
)
_INVISIBLE = regex.compile(
    r"[\u00ad\u200d\u20d0-\u20f0\ufe00-\ufe0f\U000e0100-\U000e01ef]|[\u0591-\u05c7&&\p{M}]"
    r"|(?<=\p{Cyrillic})[\u0300\u0301]|(?<!\p{Arabic})\u200c",
    regex.V1,
)
"""What changes no word: soft hyphens, joiners, selectors of glyphs, Hebrew points, stress marks."""
_DIGIT = regex.compile(r"[\p{Nd}--[0-9]]", regex.V1)
_WORD = regex.compile(
    r"(?<![a-zA-Z0-9])[a-zA-Z0-9]*+[[\p{L}\p{M}\p{N}]--[\0-\x7f]][\p{L}\p{M}\p{N}]*+", regex.V1
)
"""A word with a character that is not ASCII."""
_PIECE = regex.compile(
    rf"(?P<unspaced>(?:{_UNSPACED}\p{{M}}*+)++)"
    r"|[\p{Latin}\p{N}][\p{Latin}\p{N}\p{M}]*+"
    rf"|[\p{{L}}--\p{{Latin}}--{_UNSPACED}][[\p{{L}}\p{{M}}]--\p{{Latin}}--{_UNSPACED}]*+",
    regex.V1,
)
_LONGEST = 64
_LETTER = regex.compile(r"\p{L}\p{M}*+")
_FOLDED = str.maketrans(
    dict(zip("ðøđħıłŋŧÐØĐĦŁŊŦ", "dodhilntDODHLNT", strict=True))
    | {"æ": "ae", "þ": "th", "œ": "oe", "ß": "ss", "Æ": "AE", "Þ": "Th", "Œ": "OE", "ẞ": "SS"}
)
"""Latin letters that have no accent in Unicode, as Lucene folds them."""
_APOSTROPHES = str.maketrans("ʻʼ", "''")
_STEMMERS = {
    **{"ARABIC": "arabic", "ARMENIAN": "armenian", "CYRILLIC": "russian", "DEVANAGARI": "hindi"},
    **{"GREEK": "greek", "TAMIL": "tamil"},
}
"""Stemmers by the script of a word, as the names of its letters begin in Unicode."""


def plain(text: str) -> str:
    """Write a text in ASCII: fold accents, write words of other scripts as numbers.

    A word is stemmed by the script of its letters: as Arabic, Armenian, Russian (Cyrillic), Hindi
    (Devanagari), Greek or Tamil. Of scripts without spaces between words (Han, Kana, Hangul, Thai,
    Lao, Khmer, Myanmar), each pair of neighboring letters is a word, as in Lucene's CJKAnalyzer.
    What PISA cannot read, such as NUL or half a surrogate pair, becomes a space.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(_APOSTROPHES)
        text = _INVISIBLE.sub("", text)
        text = _DIGIT.sub(lambda digit: str(unicodedata.digit(digit[0], " ")), text)
        text = _WORD.sub(lambda word: _in_ascii(word[0]), text)
        text = re.sub(r"[^\x00-\x7f]", " ", text)
    return text.replace("\0", " ")


@lru_cache(maxsize=1 << 14)
def _in_ascii(word: str) -> str:
    folded = _folded(word)
    if folded.isascii():
        return folded
    found: list[str] = []
    for piece in _PIECE.finditer(word):
        folded = _folded(piece[0])
        if piece["unspaced"]:
            letters = _LETTER.findall(piece[0])
            found += map(_number, map("".join, pairwise(letters)) if letters[1:] else letters)
        else:
            found.append(folded if folded.isascii() else _number(_stemmed(piece[0][:_LONGEST])))
    return f" {' '.join(found)} "


def _folded(word: str) -> str:
    word = unicodedata.normalize("NFKD", word.translate(_FOLDED))
    return re.sub(r"[\u0300-\u036f]", "", word)


def _number(word: str) -> str:
    """Write the letters of a word as a number, which few texts have: it begins with 0."""
    return f"0{int.from_bytes(word[:_LONGEST].encode())}"


@lru_cache(maxsize=1 << 16)
def _stemmed(word: str) -> str:
    """Stem a word, by a stemmer of its own: while it works, it holds the word."""
    import snowballstemmer

    word = word.casefold()
    name = _STEMMERS.get(unicodedata.name(word[0], "").partition(" ")[0])
    word = _folded(word) if name == "greek" else unicodedata.normalize("NFC", word)
    return snowballstemmer.stemmer(name).stemWord(word) if name else word


def terms(text: str) -> list[str]:
    """Cut a text into the stemmed words that PISA's index has of it, in order."""
    return [term for part in _PARTS.findall(plain(text)) for term in _stems(part)]


def query_terms(query: str) -> list[str]:
    """List the distinct stemmed words of a query that are not stop words, in alphabetical order."""
    return sorted(set(content_terms(query)))


def content_terms(query: str) -> list[str]:
    """Cut a query into its stemmed words without stop words, in order."""
    return [term for term in terms(query) if term not in _stop_words()]


@lru_cache(maxsize=1 << 20)
def _stems(part: str) -> tuple[str, ...]:
    """Cut and stem a part once: each call of `tokenize` leaks the memory of its result."""
    from pyterrier_pisa import tokenize

    return tuple(tokenize(part, STEMMER))


@cache
def _stop_words() -> frozenset[str]:
    """The stems of all stop words; one of two parts, such as ``come-on``, stops neither."""
    from pyterrier_pisa.stopwords import _STOPWORDS

    words = map(terms, _STOPWORDS[STOP_WORDS])
    return frozenset(word[0] for word in words if len(word) == 1)
