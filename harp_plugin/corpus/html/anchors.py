"""Recognizes anchor texts that say nothing about the page that they lead to."""

from __future__ import annotations

import re

from ...text import WORD

__all__ = ["NUMBERED", "WORDLESS", "is_numbered", "is_wordless"]

WORDLESS = "anchor text without a word"
NUMBERED = "anchor text that is a number (Section 5.1)"

_LABELS = (
    # English, German, French, Spanish.
    "appendix|chapter|eq|equation|example|exercise|fig|figure|footnote|listing|note|page|part|sec"
    "|section|step|table|"
    "abbildung|abb|abschnitt|anhang|beispiel|kapitel|kap|schritt|seite|tabelle|tab|teil|"
    "annexe|chapitre|étape|exemple|partie|tableau|"
    "apéndice|capítulo|ejemplo|figura|página|parte|paso|sección|tabla"
)
_NUMBER = r"\(?(?:\d{1,4}|[A-Z]|[IVXLC]{1,7})(?:[.–-]\w{1,4}){0,6}\)?"
_NUMBERED = re.compile(rf"(?:(?i:{_LABELS})s?\.? |§+ ?){_NUMBER}[.:]?")


def is_wordless(anchor: str) -> bool:
    """Tell whether an anchor text has no letters and no digits, as the signs § and ¶."""
    return WORD.search(anchor) is None


def is_numbered(anchor: str) -> bool:
    """Tell whether an anchor text is a numbered label, such as "Section 5.1" or "Appendix A"."""
    return _NUMBERED.fullmatch(anchor) is not None
