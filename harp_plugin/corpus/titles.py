"""What an anchor text that repeats its page's title looks like."""

from __future__ import annotations

import unicodedata

from ..text import normalise_anchor


def title_anchors(title: str) -> list[str]:
    """The title normalised as an anchor text, and the same without a trailing "(disambiguator)"."""
    title = unicodedata.normalize("NFKC", title).strip()
    start = title.rfind("(")
    whole = normalise_anchor(title)
    if start < 1 or title.find(")", start) != len(title) - 1:
        return [whole]
    return list(dict.fromkeys([whole, normalise_anchor(title[:start])]))
