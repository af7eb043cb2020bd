"""Words of a text, normalized anchor texts and titles, and the passage that a query asks for.

Texts are normalized once, when they are read: an engine's own functions for texts would differ.
"""

from __future__ import annotations

import html
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import NamedTuple
from urllib.parse import unquote

import regex

__all__ = [
    "BEGINNING_WORDS",
    "COMMON_WORDS",
    "OWN_WORDS",
    "PASSAGE_WORDS",
    "SNIPPET_WORDS",
    "WORD",
    "Snippet",
    "first_words",
    "has_surrogates",
    "normalize_anchor",
    "normalize_title",
    "passages",
    "query_passage",
    "snippet",
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
BEGINNING_WORDS = 16
"""How many words of the beginning are kept: the title of a document stands there."""
PASSAGE_WORDS = 48
"""How many words the passage has."""
COMMON_WORDS = 8
"""How many words of the beginning all passages of a text have in common: those of a title."""
OWN_WORDS = 72
"""How many other words each of them has."""
SNIPPET_WORDS = 30
"""How many words a snippet has."""
_PREFIX = 5
_INSIDE = regex.compile(
    r"(?:(?<!\.)\.(?=\p{L}))?[\p{L}\p{N}](?:.*(?:[\p{L}\p{M}\p{N}]|(?<=\p{L})(?:\+\+|#)))?",
    regex.DOTALL,
)
_SPACE = re.compile(r"\s+")
_ENTITY = re.compile(r"&(?:#\d+|#[xX][0-9a-fA-F]+|[a-zA-Z][a-zA-Z0-9]*);")
_SURROGATE = re.compile("[\ud800-\udfff]")
_DIRECTION_MARKS = re.compile("[\u200e\u200f\u202a-\u202e]+")


def first_words(text: str, most: int) -> str:
    """Cut a text after so many words, with what stands between them."""
    beyond = next(islice(WORD.finditer(text), most, None), None)
    return text[: beyond.start()].rstrip() if beyond else text


def words(text: str) -> list[str]:
    """Return the words of a text (see `WORD`)."""
    return WORD.findall(text)


def has_surrogates(text: str) -> bool:
    """Return whether a text holds half a surrogate pair, which is no character."""
    return _SURROGATE.search(text) is not None


def without_surrogates(text: str) -> str:
    """Replace each half of a surrogate pair, which UTF-8 cannot write, by U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def normalize_anchor(text: str) -> str:
    """Normalize an anchor text, so that two spellings of the same anchor compare equal.

    The result is in Unicode NFKC and lower case, with single spaces and without punctuation at
    either end, but for the signs of names such as ``C++``, ``C#`` and ``.NET``.
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
        with suppress(UnicodeDecodeError):
            title = unquote(title, errors="strict")
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


def query_passage(query: str, text: str) -> str:
    """Return the beginning of a text and the passage in it that shares most words with a query.

    Passages are windows of words that overlap by half. A word of the query adds
    tf / (tf + 1) · ln(1 + n / df) to the score of a window in which it stands tf times, where df of
    the text's n windows have it. So no statistics of a collection are needed, and training and
    ranking, which see different collections, read the same passages. Two words are equal if their
    first five letters are, in any case, which stems words in any language (Can et al., JASIST 2008,
    "F5").

    Args:
        query: the query.
        text: the text, which begins with its title.

    Returns:
        The first 16 words and, behind a line break, the best window of 48 words, the first of
        several; the whole text where it has no more than 64 words.
    """
    matches = list(WORD.finditer(text))
    if len(matches) <= BEGINNING_WORDS + PASSAGE_WORDS:
        return text
    first = BEGINNING_WORDS + _best_window(query, matches[BEGINNING_WORDS:], PASSAGE_WORDS)
    last = min(first + PASSAGE_WORDS, len(matches)) - 1
    beginning = text[: matches[BEGINNING_WORDS - 1].end()]
    return f"{beginning}\n{text[matches[first].start() : matches[last].end()]}"


def passages(text: str, most: int) -> list[str]:
    """Split a text into passages that have the beginning of the text in common.

    Args:
        text: the text, which begins with its title.
        most: most passages; the words behind them are left out.

    Returns:
        The first 80 words; then each next 72 words, behind the first 8 words and a line break. A
        text of no more than 80 words, or of which one passage is wanted, stays as it is.
    """
    size, longest = COMMON_WORDS + OWN_WORDS, COMMON_WORDS + most * OWN_WORDS
    matches = [] if most == 1 else list(islice(WORD.finditer(text), longest))
    if len(matches) <= size:
        return [text]
    beginning, first = (text[: matches[n - 1].end()] for n in (COMMON_WORDS, size))
    parts = (matches[n : n + OWN_WORDS] for n in range(size, len(matches), OWN_WORDS))
    return [first, *(f"{beginning}\n{text[p[0].start() : p[-1].end()]}" for p in parts)]


class Snippet(NamedTuple):
    """A passage of a text, for a person who has asked a query.

    Attributes:
        text: the passage in one line.
        marks: start and end of each of its words that the query has too.
    """

    text: str
    marks: list[tuple[int, int]]

    def marked(self, opening: str, closing: str, written: Callable[[str], str] = str) -> str:
        """Return the text with marks around words of the query.

        Args:
            opening: stands before a word of the query.
            closing: stands after it.
            written: gives a part of the text as it is to be written, such as escaped for HTML.
        """
        parts, done = [], 0
        for start, end in self.marks:
            word = written(self.text[start:end])
            parts += [written(self.text[done:start]), opening, word, closing]
            done = end
        return "".join([*parts, written(self.text[done:])])


def snippet(query: str, text: str) -> Snippet:
    """Return the passage of a text that shares most words with a query, as `query_passage` does."""
    text = " ".join(text.split())
    matches = list(WORD.finditer(text))
    first = _best_window(query, matches, SNIPPET_WORDS) if len(matches) > SNIPPET_WORDS else 0
    shown = matches[first : first + SNIPPET_WORDS]
    start = shown[0].start() if first else 0
    is_cut = len(matches) > first + SNIPPET_WORDS
    passage = text[start : shown[-1].end() if is_cut else len(text)]
    before, after = "… " * bool(first), " …" * is_cut
    wanted = set(map(_stem, WORD.findall(query)))
    passage = f"{before}{passage}{after}"
    marks = [match.span() for match in WORD.finditer(passage) if _stem(match[0]) in wanted]
    return Snippet(passage, marks)


def _best_window(query: str, matches: Sequence[regex.Match[str]], length: int) -> int:
    """Return the index of the first word of the best window, the first of several."""
    stride = length // 2
    starts = range(0, len(matches) - length + stride, stride)
    wanted = set(map(_stem, WORD.findall(query)))
    windows: list[Counter[str]] = [Counter() for _ in starts]
    for index, match in enumerate(matches):
        if (stem := _stem(match[0])) in wanted:
            last = index // stride
            for window in windows[max(last - 1, 0) : last + 1]:
                window[stem] += 1
    return starts[_best(windows)]


def _stem(word: str) -> str:
    return word[:_PREFIX].lower()


def _best(windows: Sequence[Counter[str]]) -> int:
    """Return the index of the window with the highest score, from the words it has of a query."""
    having = Counter(chain.from_iterable(windows))
    weights = {stem: math.log1p(len(windows) / count) for stem, count in having.items()}
    scores = [
        sum(weights[stem] * count / (count + 1) for stem, count in window.items())
        for window in windows
    ]
    return scores.index(max(scores))
