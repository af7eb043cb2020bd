"""The tables of the package, and the words by which readers recognize what is not text."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

__all__ = ["LANGUAGES", "NAMES", "all_words", "kind_by_word", "read_table"]

WordLists = dict[str, dict[str, list[str]]]


def read_table(name: str) -> dict[str, Any]:
    """Return a TOML file of the folder ``data``."""
    return tomllib.loads(files("harp_plugin").joinpath("data", name).read_text("utf-8"))


LANGUAGES: WordLists = read_table("languages.toml")
"""By table, words and patterns by language."""
NAMES: WordLists = read_table("names.toml")
"""By table, names by what they say of a part of a page or of a link."""


def all_words(table: str) -> list[str]:
    """Return the words or patterns of a table of all languages, in the order of the file."""
    return [word for words in LANGUAGES[table].values() for word in words]


def kind_by_word(table: str) -> dict[str, str]:
    """Return what each name of a table of `NAMES` says."""
    return {word: kind for kind, words in NAMES[table].items() for word in words}
