"""The pages of a folder by all that links write for them."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import PurePosixPath

from ..word_lists import LANGUAGES
from .dialects import Layout, dialect
from .front_matter import FrontMatter, split_front_matter
from .routes import address_by_route
from .wiki_links import INDEX_NAMES, PageNames

__all__ = ["PAGE_SUFFIXES", "Site", "language_suffix", "other_keys", "stem"]

PAGE_SUFFIXES = (".md", ".markdown", ".mdx", ".ipynb")
"""The suffixes of Markdown files and of notebooks."""
_SUFFIX = re.compile(r"\.(?:md|markdown|mdx|ipynb|html?)$", re.IGNORECASE)
_FIELDS = re.compile(r"^(?:id|slug|url|permalink|aliases|alias|redirect_from)[ \t]*[:=]", re.M)
_NUMBER = re.compile(r"\A\d+[ \t]*[-_.]+[ \t]*(?=[^-_.\s\d])")
_VERSION = re.compile(r"(?<=versioned_docs/)version-")
_POST = re.compile(r"(\d{4})-(\d\d?)-(\d\d?)-(?=.)")
_LANGUAGE = re.compile(r"\.([a-z]{2})(?:-\w+)?$")
_LANGUAGES = {*LANGUAGES["wiki_codes"]["of_two_letters"], "cn", "cz", "dk", "jp", "ua"}
"""Codes of languages, and of countries that file names often have instead."""
_LABEL = re.compile(r"^\(([^()\n]+)\)=[ \t]*\n\s*(?:#+[ \t]+([^\n]+))?", re.MULTILINE)
_NAME = re.compile(
    r"^[ \t]*:?(?:name|label):[ \t]*([\w:.-]+)[ \t]*$|\$\$[ \t]*\(([\w:.-]+)\)[ \t]*$", re.MULTILINE
)
_HEADING = re.compile(r"^(?:title:|#{1,6})[ \t]+([^\n]+)", re.MULTILINE)


class Site:
    """The pages of a folder by all that links write for them.

    Args:
        keys: the paths of the Markdown files.
        layout: where they stand on the site.

    Attributes:
        keys: the paths, and the keys that stand for the files of folders.
        dialect: the dialect of the site.
        labels: the keys of pages by the labels of MyST on them, each with the heading below it.
        titles: the titles of pages by keys.
        own_addresses: the addresses that pages give to themselves, by keys.
    """

    def __init__(self, keys: Iterable[str] = (), layout: Layout | None = None) -> None:
        self.layout = layout or Layout()
        self.dialect = dialect(self.layout.name)
        pages = sorted(keys)
        self.keys: set[str] = set()
        self.names = PageNames(pages)
        self.labels: dict[str, tuple[str, str]] = {}
        self.titles: dict[str, str] = {}
        self.own_addresses: dict[str, str] = {}
        self._addresses: dict[str, str] = {}
        self._similar: dict[str, str] = {}
        self._last_parts = {"index"}
        for key in pages:
            for name in (key, *other_keys(key)):
                self.keys.add(name)
                self._add_similar(stem(name), key)

    def add_texts(self, texts: Iterable[tuple[str, str]]) -> None:
        """Read the addresses that files give to themselves, their labels and their titles.

        Args:
            texts: the keys of pages and their texts.
        """
        later: list[tuple[str, str]] = []
        for key, text in texts:
            has_fields = text.lstrip()[:3] in ("---", "+++") and (
                self.layout.routes or _FIELDS.search(text)
            )
            fields = split_front_matter(text)[0] if has_fields else FrontMatter()
            own, other = self._own_addresses(key, fields)
            later += [(address, key) for address in other if f"{address}.md" not in self.keys]
            for address in own:
                if address != stem(key):
                    self.own_addresses.setdefault(key, address)
                    self._add_address(address, key)
            for label, title in _LABEL.findall(text):
                self.labels.setdefault(label, (key, title))
            for names in _NAME.findall(text) if self.layout.name == "myst" else ():
                self.labels.setdefault("".join(names), (key, ""))
            if heading := _HEADING.search(text):
                self.titles[key] = heading[1].strip().strip("\"'")
        for address, key in later:
            self._add_address(address, key)

    def page_at(self, key: str, *, is_file: bool, language: str = "") -> str | None:
        """Return the key of the page at an address, or None.

        Args:
            key: the path, with the suffix ``.md``.
            is_file: whether it names a file and not an address.
            language: that of the page which writes it, as `language_suffix` gives it.
        """
        own = f"{stem(key)}{language}.md"
        if language and own in self.keys:
            return own
        names = [stem(own)] * bool(language) + [stem(key)] * (not is_file)
        page = next(filter(None, map(self._addresses.get, names)), None)
        return page or (key if key in self.keys else None)

    def page_like(self, key: str) -> str | None:
        """Return the only page whose address differs in case and form of letters at most."""
        return self._similar.get(_folded(stem(key))) or None

    def folders_for(self, key: str, *, with_parents: bool = True) -> Iterator[str]:
        """Give the folders to which references on a page may be relative, with a slash.

        They are those of contents, and those in which the page lies.
        """
        folders = self.layout.folders
        own = sorted((f for f in folders if key.startswith(f"{f}/")), key=len, reverse=True)
        above = map(str, PurePosixPath(key).parents if with_parents else ())
        ordered = dict.fromkeys([*own, *folders, *above, "."])
        yield from ("" if folder == "." else f"{folder}/" for folder in ordered)

    def site_root_for(self, key: str) -> str | None:
        """Return the `--site-root` by which a key that no file has, but links write, has a page.

        All of its path, or all but the first part, has to be the address of a page below a single
        folder, which is at most two levels deep. Of a whole address, this has to be the end of its
        path, of two parts or more.
        """
        host = re.match("https?://[^/]+/", key)
        start = host[0] if host else "/"
        path = key.removeprefix(start).partition("?")[0].rstrip("/")
        parts = path.split("/")
        if len(parts) < 2 or key in self.keys or not self.has_name(path):
            return None
        for depth in range(len(parts) - 1 if host else 2):
            rest = stem("/".join(parts[depth:])) + ".md"
            found = [f for f in self._upper_folders if self.page_at(f + rest, is_file=False)]
            if len(found) == 1:
                return f"{start}{''.join(f'{part}/' for part in parts[:depth])}={found[0]}"
        return None

    @cached_property
    def _upper_folders(self) -> list[str]:
        """The folders of at most two levels, with a slash; the first one is the folder itself."""
        parts = [key.split("/")[:-1] for key in self.keys]
        return sorted({"".join(f"{p}/" for p in of[:depth]) for of in parts for depth in range(3)})

    def _own_addresses(self, key: str, fields: FrontMatter) -> tuple[list[str], list[str]]:
        """Return the addresses of a page below the folder, and those that others may have too."""
        folder, _, name = stem(key).rpartition("/")
        if self.dialect.numbered:
            folder = "/".join(_NUMBER.sub("", part, count=1) for part in folder.split("/"))
            folder = _VERSION.sub("", folder, count=1)
            name = _NUMBER.sub("", name, count=1)
        category = re.sub(r"(?:^|/)_posts(?:/.*)?$", "", folder)
        folder = re.sub(r"(?:^|(?<=/))_(?=\w)", "", folder)
        written = fields.address(with_id=self.dialect.numbered)
        roots = [root for root in self.folders_for(key) if key.startswith(root)]
        if name != "_index" and not fields.text("url", "permalink"):
            paths = (key.removeprefix(root) for root in roots)
            routed = (address_by_route(self.layout.routes, path, fields) for path in paths)
            written = next((f"/{address}" for address in routed if address), written)
        own = [_joined(folder, written or name)]
        if written.startswith("/"):
            own = [_joined(root, written.lstrip("/")) for root in roots]
        other = [posixpath.dirname(address) for address in own if address.endswith("/index.md")]
        former = [old.lstrip("/") for old in fields.former_addresses if "//" not in old]
        other += [_joined(root, old) for root in roots for old in former]
        suffix = language_suffix(name)
        name = name.removesuffix(suffix)
        other.append(_joined(folder, name))
        other.append(_joined(category, _POST.sub(r"\1/\2/\3/", name)))
        if name.lower() in INDEX_NAMES or name == posixpath.basename(folder):
            other += [folder, _POST.sub(r"\1/\2/\3/", folder)]
        if suffix:
            of_language = (f"{r}{suffix[1:]}/{a.removeprefix(r)}" for r in roots for a in other)
            other += [*of_language, *(f"{address}{suffix}" for address in other)]
        own, other = ([stem(a) for a in addresses if stem(a)] for addresses in (own, other))
        return own, other

    def has_name(self, key: str) -> bool:
        """Return whether a page has the last part of this address; it is quick."""
        return _folded(posixpath.basename(stem(key))) in self._last_parts

    def _add_address(self, address: str, key: str) -> None:
        self._addresses.setdefault(address, key)
        self._add_similar(address, key)

    def _add_similar(self, address: str, key: str) -> None:
        self._last_parts.add(_folded(posixpath.basename(address)))
        if self._similar.setdefault(_folded(address), key) != key:
            self._similar[_folded(address)] = ""


def language_suffix(path: str) -> str:
    """Return the language that the name of a page ends with, such as ``.en`` of ``a.en.md``."""
    found = _LANGUAGE.search(stem(path))
    return found[0] if found and found[1] in _LANGUAGES else ""


def stem(path: str) -> str:
    """Return a path without the suffix of a page."""
    return _SUFFIX.sub("", path)


def other_keys(key: str) -> Iterator[str]:
    """Give the keys that lead to a file where no file has them."""
    path = key.rpartition(".")[0] or key
    folder, slash, name = path.rpartition("/")
    keys = [f"{path}.md"]
    if name.lower() in INDEX_NAMES:
        keys += [f"{folder}{slash}index.md", *([f"{folder}.md"] if folder else [])]
    yield from (other for other in dict.fromkeys(keys) if other != key)


def _joined(folder: str, name: str) -> str:
    return posixpath.normpath(posixpath.join(folder, name)).strip("/") if folder or name else ""


def _folded(address: str) -> str:
    return unicodedata.normalize("NFC", address).casefold()
