"""Finds the pages that wiki links such as ``[[Page name#Heading|text]]`` name."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable

__all__ = ["INDEX_NAMES", "PageNames", "page_name"]

INDEX_NAMES = ("index", "readme", "_index")
"""The names of the file of a folder, in lower case."""


def page_name(part: str) -> str:
    """Return the name of a page in a wiki link, without the place on the page."""
    return re.split(r"[#^]", part, maxsplit=1)[0].strip()


class PageNames:
    """The pages of a folder by their names.

    Case does not count, and spaces, underlines and hyphens are the same.

    Args:
        keys: the paths of all pages below the folder.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        self._keys: dict[str, list[str]] = defaultdict(list)
        index_names = [_normalized(name) for name in INDEX_NAMES]
        for key in keys:
            name = _normalized(key.rpartition(".")[0])
            folder, _, file = name.rpartition("/")
            for names in (name, folder) if folder and file in index_names else (name,):
                parts = names.split("/")
                for start in range(len(parts)):
                    self._keys["/".join(parts[start:])].append(key)

    def find(self, name: str, path: str) -> str | None:
        """Return the page of a name, in which folders may stand before the name.

        Of several, this is the one at this path below the folder if the name has folders, else the
        one next to the file that links to it, else the one with the shortest path.

        Args:
            name: the name.
            path: the path of the file that links to it.
        """
        folded = _normalized(name.removesuffix(".md")).strip("/")
        folder = path.rpartition("/")[0]
        keys = self._keys.get(folded, [])
        return min(
            keys,
            key=lambda key: (
                "/" in folded and _normalized(key.rpartition(".")[0]) != folded,
                key.rpartition("/")[0] != folder,
                key.count("/"),
                key,
            ),
            default=None,
        )


def _normalized(name: str) -> str:
    return unicodedata.normalize("NFC", re.sub(r"[ _]", "-", name)).lower()
