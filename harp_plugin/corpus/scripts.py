"""Recognizes pages in scripts that write no spaces between words: words are not segmented."""

from __future__ import annotations

from collections.abc import Collection

import regex

__all__ = ["WITHOUT_SPACES", "is_without_spaces"]

WITHOUT_SPACES = (
    "page in Chinese, Japanese, Thai, Lao, Khmer or Burmese, whose words no spaces separate"
)
"""Why such a page is dropped."""
_LETTER_WITHOUT_SPACES = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
)
_LETTER = regex.compile(r"[\p{L}\p{M}]")


def is_without_spaces(texts: Collection[str]) -> bool:
    """Return whether more than half of the letters of a page are of such scripts.

    Args:
        texts: the texts of the page.
    """
    # Letters of these scripts take three bytes. Where fewer than one character in eight can be one
    # of them, no letter is counted.
    characters = sum(map(len, texts))
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    if (size - characters) * 4 < characters:
        return False
    text = "\n".join(texts)
    return 2 * len(_LETTER_WITHOUT_SPACES.findall(text)) > len(_LETTER.findall(text))
