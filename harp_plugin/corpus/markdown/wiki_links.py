"""Finds the pages that wiki links such as ``[[Page name#Heading|text]]`` name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

__all__ = ["PageNames", "linked_names", "page_name"]

_LINK = re.compile(r"\[\[([^\[\]\n]+)\]\]")


def linked_names(text: str) -> list[str]:
    """Return all that the wiki links of a text may name, each once.

    Obsidian writes the page before the text of a link, and GitHub's wikis write it behind.
    """
    parts = (part for link in _LINK.findall(text) for part in link.replace(r"\|", "|").split("|"))
    return list(dict.fromkeys(filter(None, map(page_name, parts))))


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
        for key in keys:
            parts = _normalized(key.rpartition(".")[0]).split("/")
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
    return re.sub(r"[ _]", "-", name).lower()
