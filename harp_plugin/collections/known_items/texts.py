"""Forms of short texts: what is compared, and what is not natural language."""

from __future__ import annotations

import unicodedata
from functools import cache

import regex

from ...tasks.terms import stop_words
from ...text import words

__all__ = ["is_address", "is_natural", "near_form", "same_form", "title_forms", "without_qualifier"]

_QUALIFIER = regex.compile(r"\s*\[[^\]\[]*\]")
_DISAMBIGUATOR = regex.compile(r"\s+\([^()]*\)$")
_EDGES = ",;:()\"'“”‘’.!?"
_IDENTIFIER = regex.compile(
    r"\p{Ll}\p{Lu}|\p{Lu}\p{Lu}\p{Ll}"  # fileName, CString
    r"|\p{L}\d|\d\p{L}"  # C4996, 64bit
    r"|\p{L}\.\p{L}{2}|\p{L}{2}\.\p{L}"  # stdio.h, System.Text
    r"|^[^\p{L}\p{N}]"  # _CrtDbgReport, -Wall, /clr
    r"|[^\p{L}\p{M}\p{N}'’.&/+#-]"  # std::vector, size_t, operator<<
)
_NATURAL = regex.compile(r"\p{Lu}{2,}s|\d+(?:st|nd|rd|th|s|D)|(?:Mc|Mac)\p{Lu}\p{Ll}+")
"""Words that only seem to be identifiers: DLLs, 20th, 1960s, 3D, McDonald."""

_PLUS_PLUS = regex.compile(r"(?<=\p{L})\+\+")
_SHARP = regex.compile(r"(?<=\p{L})#")


def without_qualifier(text: str) -> str:
    """Leave out what an index adds to tell equal terms apart, and fold white space.

    ``arrays [C++], multidimensional`` becomes ``arrays, multidimensional``, and the title
    ``Mercury (planet)`` becomes ``Mercury``.
    """
    text = " ".join(_QUALIFIER.sub("", unicodedata.normalize("NFC", text)).split())
    return _DISAMBIGUATOR.sub("", text).strip(" ,;")


def is_natural(text: str) -> bool:
    """Return whether a text is natural language: no word of it looks like an identifier.

    A word does if it has a capital letter inside it, a digit next to a letter, a full stop before
    letters, a sign other than ``'.&/+#-``, or starts with a sign: ``CString``, ``C4996``,
    ``stdio.h``, ``std::vector``, ``_CrtDbgReport``, ``/clr``. So ``files, closing``, ``C++``,
    ``NATO`` and ``DLLs, linking`` are natural, ``CWnd, GetProperty`` and ``C2065`` are not.
    """
    parts = [part.strip(_EDGES) for part in text.split()]
    return not any(
        _IDENTIFIER.search(part) for part in parts if part and not _NATURAL.fullmatch(part)
    )


def is_address(text: str) -> bool:
    """Return whether the name of a page is an address or a path, not a title."""
    return " " not in text and ("/" in text or regex.search(r"\.\p{Ll}{2,4}$", text) is not None)


def same_form(text: str) -> str:
    """Return a form that spellings of a text share which differ by case and punctuation only."""
    return " ".join(_words(unicodedata.normalize("NFKC", text)))


def near_form(text: str) -> str:
    """Return a form that near-duplicate texts share.

    They differ by case, punctuation, accents, stop words, plurals and the order of words only.
    """
    plain = "".join(
        char for char in unicodedata.normalize("NFKD", text) if unicodedata.category(char) != "Mn"
    )
    every = _words(plain)
    content = [word for word in every if word not in _stop_words()] or every
    return " ".join(sorted(map(_singular, content)))


def title_forms(text: str) -> frozenset[str]:
    """Return the forms of which a title and its variants share one.

    These are the near form, and one without any space or hyphen: ``thermo-dynamics`` is a variant
    of ``thermodynamics``.
    """
    return frozenset({near_form(text), _singular(same_form(text).replace(" ", ""))})


def _words(text: str) -> list[str]:
    """Return the words in lower case; ``C++`` and ``C#`` are words of their own."""
    return words(_SHARP.sub("sharp", _PLUS_PLUS.sub("plusplus", text.lower())))


@cache
def _stop_words() -> frozenset[str]:
    return stop_words("scikit-learn")


def _singular(word: str) -> str:
    """Take the ending of a plural off, by the S-stemmer (Harman, 1991)."""
    if word.endswith("ies") and not word.endswith(("eies", "aies")):
        return f"{word[:-3]}y"
    if word.endswith("es") and not word.endswith(("aes", "ees", "oes")):
        return word[:-1]
    if word.endswith("s") and not word.endswith(("us", "ss")):
        return word[:-1]
    return word
