"""The words of texts as PISA indexes them: folded, stemmed, without stop words in queries."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache

__all__ = ["READABLE", "STEMMER", "STOP_WORDS", "content_terms", "plain", "query_terms", "terms"]

READABLE = re.compile("[A-Za-z0-9]")
"""What the words that PISA knows are made of."""
STEMMER = "porter2"
STOP_WORDS = "terrier"
_PARTS = re.compile(r"[A-Za-z0-9.']+")
"""No word of PISA's has another character, so that what stands between them ends a word."""


def plain(text: str) -> str:
    """Fold accents and blank out what PISA cannot read, such as NUL or half a surrogate pair."""
    if not text.isascii():
        text = re.sub(r"[\u0300-\u036f]", "", unicodedata.normalize("NFKD", text))
        text = re.sub(r"[^\x00-\x7f]", " ", text)
    return text.replace("\0", " ")


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
