"""Reads the front matter of a Markdown file: YAML between ``---``, or TOML between ``+++``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

__all__ = ["FrontMatter", "split_front_matter"]

_BLOCK = re.compile(
    r"\s*?(?:---[ \t]*\r?\n(?P<yaml>.*?)^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)"
    r"|\+\+\+[ \t]*\r?\n(?P<toml>.*?)^\+\+\+[ \t]*(?:\r?\n|\Z))",
    re.DOTALL | re.MULTILINE,
)
_FIELD = re.compile(r"^[\w.\"'-]+[ \t]*[:=]", re.MULTILINE)
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
"""Reads every scalar as it is written, and neither tags nor merged keys."""
_NULL = ("", "~", "null", "true", "false")
_LARGE = 1 << 64
_QUALIFIER = re.compile(r" \[[^\[\]]*\w[^\[\]]*\](?=,|$)")
_LANGUAGE = re.compile(r"([a-zA-Z]{2,3})(?![a-zA-Z])")


@dataclass(slots=True)
class FrontMatter:
    """The fields at the start of a Markdown file.

    Attributes:
        fields: the fields by name.
        is_broken: whether there is a front matter that cannot be read.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    is_broken: bool = False

    def text(self, *names: str) -> str:
        """Return the text of the first of these fields that has one; empty where none has."""
        return next(self.texts(*names), "")

    @property
    def language(self) -> str | None:
        """The language code of two or three letters."""
        match = _LANGUAGE.match(self.text("lang", "language", "locale"))
        return match[1].lower() if match else None

    @property
    def former_addresses(self) -> list[str]:
        """References to this page: its former addresses, and the address that it gives itself."""
        names = self.texts("redirect_from", "aliases", "alias", "slug", "permalink", "url")
        return [name for name in names if "/" in name]

    def address(self, *, with_id: bool) -> str:
        """Return the address that the page gives to itself, or its last part; else nothing.

        Args:
            with_id: whether the ``id`` is a part of the address.
        """
        names = self.texts("url", "permalink", "slug", *(["id"] if with_id else []))
        return next((name for name in names if ":" not in name), "")

    @property
    def other_names(self) -> list[str]:
        """Other titles of the page: the aliases that are not addresses."""
        return [name for name in self.texts("aliases", "alias") if "/" not in name]

    @property
    def index_terms(self) -> list[str]:
        """The terms under which an index lists the page, each once.

        These are ``helpviewer_keywords`` (DocFX), in which a qualifier such as ``[C++]`` is left
        out, ``keywords``, and aliases that are not addresses. Identifiers for programs
        (``f1_keywords``) and names of groups (``tags``, ``categories``) are not such terms.
        """
        terms = [_QUALIFIER.sub("", term) for term in self.texts("helpviewer_keywords")]
        keywords = self.fields.get("keywords")
        terms += keywords.split(",") if isinstance(keywords, str) else self.texts("keywords")
        folded = (" ".join(term.split()) for term in [*terms, *self.other_names])
        return list(dict.fromkeys(term for term in folded if term))

    def texts(self, *names: str) -> Iterator[str]:
        """Give the texts of fields, each of which holds one text or a list of texts."""
        for name in names:
            value = self.fields.get(name)
            for part in value if isinstance(value, list) else [value]:
                is_number = isinstance(part, int | float) and abs(part) < _LARGE
                text = str(part).strip() if isinstance(part, str) or is_number else ""
                if text.lower() not in _NULL:
                    yield text


def split_front_matter(text: str) -> tuple[FrontMatter, str]:
    """Split a file into its front matter and the Markdown below it.

    A front matter that is not valid, or no list of fields, is marked as broken and left out. Lines
    between two ``---`` that have no field are not front matter but text between two rules.
    """
    match = _BLOCK.match(text)
    if match is None:
        return FrontMatter(), text
    below = text[match.end() :]
    block = match["yaml"] if match["toml"] is None else match["toml"]
    try:
        fields = tomllib.loads(block) if match["toml"] is not None else yaml.load(block, _LOADER)
    except (yaml.YAMLError, tomllib.TOMLDecodeError, ValueError, RecursionError):
        fields = None
    if isinstance(fields, dict):
        return FrontMatter({str(name): value for name, value in fields.items()}), below
    if not block.strip():
        return FrontMatter(), below
    if match["toml"] is None and _FIELD.search(block) is None:
        return FrontMatter(), text
    return FrontMatter(is_broken=True), below
