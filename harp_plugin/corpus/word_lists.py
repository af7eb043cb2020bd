"""The words by which readers recognize what is not text: ``languages.toml`` and ``names.toml``."""

from __future__ import annotations

import tomllib
from importlib.resources import files

__all__ = ["LANGUAGES", "NAMES", "all_words", "kind_by_word"]

WordLists = dict[str, dict[str, list[str]]]


def _read(name: str) -> WordLists:
    return tomllib.loads(files("harp_plugin").joinpath("data", name).read_text("utf-8"))


LANGUAGES = _read("languages.toml")
"""By table, words and patterns by language."""
NAMES = _read("names.toml")
"""By table, names by what they say of a part of a page or of a link."""


def all_words(table: str) -> list[str]:
    """Return the words or patterns of a table of all languages, in the order of the file."""
    return [word for words in LANGUAGES[table].values() for word in words]


def kind_by_word(table: str) -> dict[str, str]:
    """Return what each name of a table of `NAMES` says."""
    return {word: kind for kind, words in NAMES[table].items() for word in words}
