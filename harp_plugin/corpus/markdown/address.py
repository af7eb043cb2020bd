"""Addresses of Markdown files: every form in which links write them gets one spelling."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from ..pages import Dropped
from ..urls import INSIDE, FileAddress

__all__ = ["PAGE_SUFFIXES", "XREF", "MarkdownAddress"]

PAGE_SUFFIXES = (".md", ".markdown", ".mdx")
"""The suffixes of Markdown files."""
XREF = "xref:"
"""The prefix of links of DocFX that name a page by its uid."""
_INDEX_NAMES = ("index", "readme", "_index")
_PAGE_SUFFIX = re.compile(r"\.(?:html?|aspx)$", re.IGNORECASE)
_OTHER_SUFFIX = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,4}$")
_INDEX_PAGE = "index.html"


class MarkdownAddress:
    """The path of a Markdown file below a folder, and the base of its relative references.

    A key is the path of a file with the suffix ``.md``. References without a suffix, with the
    suffix of a web page, and those to a folder get it as well: ``a/b``, ``a/b.html``, ``a/b/`` and
    ``a/b.md`` are one key. `other_keys` has the keys that stand for the file of a folder.

    Args:
        path: the path of the file.
        roots: the folders of sites, as `site_roots` gives them, for absolute references.

    Attributes:
        key: the path without the suffix of a compressed file.
    """

    def __init__(self, path: str, roots: Mapping[str, str] | None = None) -> None:
        self._file = FileAddress(path)
        self._roots = roots or {}
        self.key = self._file.key

    @property
    def name(self) -> str:
        """The name of the file without its suffix; of a folder's own file, that of the folder."""
        folder, _, file = self.key.rpartition("/")
        stem = file.rpartition(".")[0] or file
        is_index = stem.lower() in _INDEX_NAMES and folder
        return folder.rpartition("/")[2] if is_index else stem

    def other_keys(self) -> Iterator[str]:
        """Give the keys that lead to this file where no file has them."""
        stem = self.key.rpartition(".")[0] or self.key
        folder, slash, name = stem.rpartition("/")
        keys = [f"{stem}.md"]
        if name.lower() in _INDEX_NAMES:
            keys += [f"{folder}{slash}index.md", *([f"{folder}.md"] if folder else [])]
        yield from (key for key in dict.fromkeys(keys) if key != self.key)

    def resolve(self, reference: str) -> str | Dropped:
        """Return the key of the page that a reference names, or why it names none.

        For a page of another site, this is its canonical URL.
        """
        reference = reference.strip()
        if reference.startswith(XREF):
            return XREF + unquote(re.split("[?#]", reference[len(XREF) :])[0])
        for start, folder in self._roots.items():
            if reference.startswith(start):
                reference = folder + reference.removeprefix(start)
                break
        target = self._file.resolve(reference)
        if isinstance(target, Dropped) or target.startswith(("http://", "https://")):
            return target
        is_folder = target.endswith(_INDEX_PAGE) and _INDEX_PAGE not in reference
        key = _key(target.removesuffix(_INDEX_PAGE) if is_folder else target)
        return INSIDE if key == self.key else key


def _key(path: str) -> str:
    """Return the key of the file that a path names."""
    path = path.rstrip("/")
    if not path:
        return "index.md"
    if path.lower().endswith(PAGE_SUFFIXES):
        return path
    page = _PAGE_SUFFIX.sub(".md", path)
    return page if page != path or _OTHER_SUFFIX.search(path) else f"{path}.md"
