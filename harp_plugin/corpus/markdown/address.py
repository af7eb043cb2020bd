"""Addresses of Markdown files: every form in which links write them gets one spelling."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from urllib.parse import unquote

from ..pages import Dropped
from ..urls import INSIDE, OUTSIDE, FileAddress
from .site import PAGE_SUFFIXES, Site, language_suffix, other_keys, stem
from .wiki_links import INDEX_NAMES

__all__ = ["PAGE", "TEMPLATE", "XREF", "MarkdownAddress"]

XREF = "xref:"
"""The prefix of links of DocFX that name a page by its uid."""
PAGE = "page:"
"""The prefix of references that name a page by its name, or by a label of MyST on it."""
TEMPLATE = "template:"
"""A reference that a template makes, and that only its generator knows."""
_MADE = Dropped("link to an address that a template makes")
_PAGE_SUFFIX = re.compile(r"\.(?:html?|aspx)$", re.IGNORECASE)
_OTHER_SUFFIX = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,4}$")
_SITE_FOLDER = re.compile(r"\A(?:@(?:site)?/|~/|project:)")
_INDEX_PAGE = "index.html"


class MarkdownAddress:
    """The path of a Markdown file below a folder, and the base of its relative references.

    A key is the path of a file with the suffix ``.md``. References without a suffix, with the
    suffix of a web page, and those to a folder get it as well: ``a/b``, ``a/b.html``, ``a/b/`` and
    ``a/b.md`` are one key. `other_keys` has the keys that stand for the file of a folder.

    Args:
        path: the path of the file.
        roots: the folders of sites, as `site_roots` gives them, for absolute references.
        site: the pages of the folder.

    Attributes:
        key: the path without the suffix of a compressed file.
        roots, site: the arguments.
    """

    def __init__(
        self, path: str, roots: Mapping[str, str] | None = None, site: Site | None = None
    ) -> None:
        self._file = FileAddress(path)
        self.roots = roots or {}
        self.site = site or Site([self._file.key])
        self.key = self._file.key
        self._language = language_suffix(self.key)

    @property
    def name(self) -> str:
        """The name of the file without its suffix; of a folder's own file, that of the folder."""
        folder, _, file = self.key.rpartition("/")
        name = file.rpartition(".")[0] or file
        is_index = name.lower() in INDEX_NAMES and folder
        return folder.rpartition("/")[2] if is_index else name

    def other_keys(self) -> Iterator[str]:
        """Give the keys that lead to this file where no file has them."""
        return other_keys(self.key)

    def resolve(self, reference: str) -> str | Dropped:
        """Return the key of the page that a reference names, or why it names none.

        Of all that a reference may mean, the first page that exists counts, else the only one whose
        letters differ in case or form. For a page of another site, this is its canonical URL.
        """
        reference = reference.strip()
        if reference.startswith("#"):
            return INSIDE
        if reference.startswith(XREF):
            return XREF + unquote(re.split("[?#]", reference[len(XREF) :])[0])
        if TEMPLATE in reference:
            return _MADE
        if reference.startswith(PAGE):
            name = unquote(re.split("[?#]", reference[len(PAGE) :])[0])
            page = self._named(name)
            return self.resolve(name) if page is None and "/" in name else self._other(page or name)
        keys: list[str] = []
        first: str | Dropped = INSIDE
        for base, written in self._readings(reference):
            target = base.resolve(written)
            if target is OUTSIDE:
                first = first if keys else OUTSIDE
                continue
            if isinstance(target, Dropped) or target.startswith(("http://", "https://")):
                first = first if keys else target
                break
            is_folder = target.endswith(_INDEX_PAGE) and _INDEX_PAGE not in written
            keys.append(_key(target.removesuffix(_INDEX_PAGE) if is_folder else target))
            is_file = not is_folder and target.lower().endswith(PAGE_SUFFIXES)
            if page := self.site.page_at(keys[-1], is_file=is_file, language=self._language):
                return self._other(page)
            if not self.site.has_name(keys[-1]):
                break
        similar = next(filter(None, map(self.site.page_like, keys)), None)
        return self._other(similar or keys[0]) if keys and (similar or first is INSIDE) else first

    def _readings(self, reference: str) -> Iterator[tuple[FileAddress, str]]:
        """Give what a reference may mean: addresses, and references relative to them."""
        start = next(filter(reference.startswith, self.roots), "")
        reference = self.roots.get(start, "") + reference.removeprefix(start)
        reference = _SITE_FOLDER.sub("/", reference)
        starts = (s for s in self.site.layout.bases if f"{reference}/".startswith(s))
        within = [f"/{reference[len(start) :]}" for start in starts]
        if reference.startswith("/") or within:
            is_deep = "/" in reference.strip("/")
            for folder in ("", *self.site.folders_for(self.key, with_parents=is_deep)):
                for path in (reference, *within):
                    if path.startswith("/"):
                        yield self._file, f"/{folder}{path.lstrip('/')}"
            yield self._file, reference
            return
        is_file = re.split("[?#]", reference)[0].lower().endswith(PAGE_SUFFIXES)
        is_reversed = self.site.dialect.directory_urls and not is_file
        for base in self._bases[::-1] if is_reversed else self._bases:
            yield base, reference
        if not re.match(r"[#?.]|[\w+-]+:", reference):
            for folder in self.site.folders_for(self.key):
                yield self._file, f"/{folder}{reference}"

    @cached_property
    def _bases(self) -> list[FileAddress]:
        """What relative references may be relative to: the file, its address, a folder of that."""
        own = stem(self.key)
        address = self.site.own_addresses.get(self.key, own)
        is_index = posixpath.basename(own).lower() in INDEX_NAMES
        bases = [self._file, *([FileAddress(address)] if address != own else [])]
        return bases if is_index else [*bases, FileAddress(f"{address}/index.html")]

    def is_page(self, name: str) -> bool:
        """Return whether links by name have this one for a page."""
        return self._named(name) is not None

    def _named(self, name: str) -> str | None:
        """Return the key of a page by its name or by the label on it, or None."""
        if name in self.site.labels:
            return self.site.labels[name][0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(self.key), name))
        return self.site.names.find(path if name.startswith(".") else name, self.key)

    def _other(self, key: str) -> str | Dropped:
        return INSIDE if key == self.key else key


def _key(path: str) -> str:
    """Return the key of the file that a path names."""
    path = re.sub("/{2,}", "/", path).rstrip("/")
    if not path:
        return "index.md"
    if path.lower().endswith(PAGE_SUFFIXES):
        return path
    page = _PAGE_SUFFIX.sub(".md", path)
    return page if page != path or _OTHER_SUFFIX.search(path) else f"{path}.md"
