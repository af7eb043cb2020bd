"""Refuses pages in scripts that write no spaces between words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

import regex

from ..errors import HarpError

__all__ = ["check_scripts", "refusal"]

_SCRIPTS = {
    "Chinese": r"\p{Han}",
    "Japanese": r"\p{Hiragana}\p{Katakana}",
    "Thai": r"\p{Thai}",
    "Lao": r"\p{Lao}",
    "Khmer": r"\p{Khmer}",
    "Burmese": r"\p{Myanmar}",
}
"""The scripts by the name of a language; Japanese writes Chinese letters as well."""
_LETTERS = {name: regex.compile(f"[{script}]") for name, script in _SCRIPTS.items()}
_LETTER = regex.compile(r"[\p{L}\p{M}]")
_KANA = 0.1
"""The smallest fraction of Hiragana and Katakana in a Japanese text."""
_REASONS = {
    name: f"page in {name}, whose words no spaces separate (name sources in other languages)"
    for name in _SCRIPTS
}


def refusal(texts: Collection[str]) -> str | None:
    """Return why a page is dropped if more than half of its letters are of such a script.

    Args:
        texts: the texts of the page.
    """
    # Letters of these scripts take three bytes. Where fewer than one character in eight can be one
    # of them, no letter is counted.
    characters = sum(map(len, texts))
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    if (size - characters) * 4 < characters:
        return None
    text = "\n".join(texts)
    counts = Counter({name: len(letters.findall(text)) for name, letters in _LETTERS.items()})
    if 2 * counts.total() <= len(_LETTER.findall(text)):
        return None
    kana = counts["Japanese"] > _KANA * counts["Chinese"]
    counts["Japanese" if kana else "Chinese"] = counts["Chinese"] + counts["Japanese"]
    counts["Chinese" if kana else "Japanese"] = 0
    return _REASONS[counts.most_common(1)[0][0]]


def check_scripts(sources: str, rows: Mapping[str, int], drops: Mapping[str, int]) -> None:
    """Check that pages are left where pages in such scripts were dropped.

    Args:
        sources: the names of the sources.
        rows: the number of rows of each table.
        drops: the number of drops by reason.

    Raises:
        HarpError: all pages were dropped.
    """
    refused = {name: drops[reason] for name, reason in _REASONS.items() if drops.get(reason)}
    if refused and not rows.get("pages"):
        names = ", ".join(f"{name} ({count:,})" for name, count in refused.items())
        raise HarpError(
            f"{sources}: all pages are in {names}, whose words no spaces separate, and words are "
            "not segmented: name a source in another language"
        )
