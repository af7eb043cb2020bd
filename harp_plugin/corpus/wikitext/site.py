"""The settings of a wiki: its namespaces, the case of its titles, and its language."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CANONICAL_NAMESPACES", "MEDIA_NAMESPACES", "Site", "wiki_language"]

CANONICAL_NAMESPACES = frozenset(
    {"media", "special", "talk", "user", "wikipedia", "project", "file", "image", "mediawiki"}
    | {"template", "help", "category", "portal", "book", "draft", "module", "timedtext", "topic"}
)
"""English names of the namespaces that hold no articles, in lower case."""
MEDIA_NAMESPACES = frozenset({"file", "image", "category", "media"})
"""Those of them whose links show no text."""


@dataclass(frozen=True, slots=True)
class Site:
    """The settings of a wiki that parsing depends on.

    Attributes:
        namespaces: lower-case names of the namespaces that hold no articles.
        media: those of them whose links show no text (files and categories).
        first_letter: whether the first letter of a title is always a capital letter.
        language: the language code.
    """

    namespaces: frozenset[str] = CANONICAL_NAMESPACES
    media: frozenset[str] = MEDIA_NAMESPACES
    first_letter: bool = True
    language: str = "en"


def wiki_language(code: str) -> str:
    """Return the language code of a wiki by its code; a wiki without a code counts as English.

    The code of a wiki is its language code, but the Simple English Wikipedia has ``simple``.
    """
    return "en" if code in ("", "simple") else code
