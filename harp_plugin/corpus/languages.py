"""The words of languages by which readers recognize what is not text: ``data/languages.toml``."""

from __future__ import annotations

import tomllib
from importlib.resources import files

__all__ = ["listed", "listed_by_language"]

_TABLES: dict[str, dict[str, list[str]]] = tomllib.loads(
    files("harp_plugin").joinpath("data", "languages.toml").read_text("utf-8")
)


def listed(table: str) -> list[str]:
    """Return the words or patterns of a table, those of all languages, in the order of the file."""
    return [entry for entries in _TABLES[table].values() for entry in entries]


def listed_by_language(table: str) -> dict[str, list[str]]:
    """Return the words or patterns of a table by its keys."""
    return _TABLES[table]
