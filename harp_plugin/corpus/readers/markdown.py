"""Files of Markdown and Jupyter notebooks, whose keys are their paths below a folder."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from ...errors import HarpError
from ..html import LONG_PAGE, MAX_PAGE, decode
from ..markdown import (
    PAGE_SUFFIXES,
    MarkdownAddress,
    Site,
    find_layout,
    is_fragment,
    markdown_items,
    notebook_markdown,
    with_includes,
)
from ..options import CorpusOptions, site_roots
from ..pages import Dropped, Item
from ..urls import FileAddress
from .source import MAX_RECORD, Source, is_passed_over, printable

__all__ = ["FRAGMENT", "MarkdownReader"]

FRAGMENT = Dropped("file that is only a part of other pages")
_NO_NOTEBOOK = Dropped("notebook that cannot be read")
_SECOND_FORM = Dropped("notebook next to its page in Markdown or HTML")
_FIRST_FORMS = (".md", ".markdown", ".mdx", ".html")
_FOLDERS_OF_COPIES = frozenset({"_build", "_downloads", "_sources"})
"""Where Sphinx and Jupyter Book put the notebooks that they have read."""
_BINARY = re.compile(rb"\A(?!\xff\xfe|\xfe\xff).{0,1024}\0", re.DOTALL)


class _File(NamedTuple):
    """A file with its includes.

    Attributes:
        key: the name of the source.
        text: the content.
        roots: the folders of sites, as `site_roots` gives them.
        site: the pages of its folder; records of one folder share it.
    """

    key: str
    text: str
    roots: dict[str, str]
    site: Site


class MarkdownReader:
    """Reads Markdown files, and the Markdown cells of Jupyter notebooks.

    Each is a page, and its key is the path of the file. Links between the files name pages by their
    paths, and links to other sites by canonical URLs. Files that a file includes are put into it
    when it is read, and links find their pages among the files below the same folder, as the
    generator of the folder makes their addresses.

    Attributes:
        counts: the number of files read in each dialect.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._options = CorpusOptions()
        self._folder: _Folder | None = None

    def configure(self, options: CorpusOptions) -> None:
        """Take the roots of sites and the dialect from the options of the corpus stage."""
        self._options = options

    def recognizes(self, source: Source) -> bool:
        """Return whether the name of the source is that of a Markdown file, and it holds text."""
        return _is_markdown(source.name) and _BINARY.search(source.head) is None

    def records(self, source: Source) -> Iterator[_File | Dropped]:
        """Read the whole file, and the files that it includes."""
        folder = self._folder_of(source)
        if folder.is_second_form(source.name):
            yield _SECOND_FORM
            return
        most = _most_bytes(source.name)
        with source.open() as file:
            data = file.read(most + 1)
        if len(data) > most:
            yield LONG_PAGE
            return
        text = _text(source.name, data)
        if text is None:
            yield _NO_NOTEBOOK
            return
        if len(text) > MAX_PAGE:
            yield LONG_PAGE
            return
        if is_fragment(source.name, text):
            yield FRAGMENT
            return
        drops: Counter[str] = Counter()
        text = with_includes(source.name, text, folder.read, drops)
        yield from map(Dropped, drops.elements())
        self.counts[f"Markdown files read as {folder.site.layout.name}"] += 1
        yield _File(source.name, text, site_roots(self._options.site_root), folder.site)

    def parse(self, record: _File) -> Iterable[Item]:
        """Parse the page."""
        address = MarkdownAddress(record.key, record.roots, record.site)
        return markdown_items(record.text, address)

    def _folder_of(self, source: Source) -> _Folder:
        """Return the folder that the user named, or the named files in the folder of the file.

        Raises:
            HarpError: the source is at a URL, where a page's links and includes are not known.
        """
        if (path := source.path) is None:
            raise HarpError(f"{source.name} is at a URL: copy its folder to a disk, and name that")
        root = source.folder or path.parent
        if self._folder is None or self._folder.root != root:
            named = {path, *(other for other in source.named if other.parent == root)}
            paths = sorted(named if source.folder is None else root.rglob("*"))
            self._folder = _Folder(root, paths, self._options.dialect)
        return self._folder


class _Folder:
    """The files below a folder."""

    def __init__(self, root: Path, paths: Iterable[Path], dialect: str) -> None:
        self.root = root
        self.real_root = root.resolve()
        self.paths = [printable(path.relative_to(root).as_posix()) for path in paths]
        self.dialect = dialect
        self._names = frozenset(self.paths)

    @cached_property
    def site(self) -> Site:
        """The Markdown files, and what links write for them."""
        paths = (p for p in self.paths if _is_markdown(p) and not is_passed_over(p))
        names = {FileAddress(path).key: path for path in paths if not self.is_second_form(path)}
        site = Site(names, find_layout(self.paths, self.read, self.dialect))
        site.add_texts((key, self.read(path) or "") for key, path in names.items())
        return site

    def is_second_form(self, name: str) -> bool:
        """Return whether a file is a notebook next to the same page as Markdown or HTML."""
        path = name.removesuffix(".ipynb")
        return path != name and any(path + suffix in self._names for suffix in _FIRST_FORMS)

    def read(self, path: str) -> str | None:
        """Return the text of a file; None if there is none, or it does not lie below the folder."""
        file = self.root / path
        try:
            if not file.is_file() or not file.resolve().is_relative_to(self.real_root):
                return None
            with Source(path, file).open() as stream:
                return _text(path, stream.read(_most_bytes(path)))
        except (HarpError, OSError, ValueError):
            return None


def _is_markdown(name: str) -> bool:
    key = FileAddress(name).key.lower()
    is_copy = _is_notebook(name) and not _FOLDERS_OF_COPIES.isdisjoint(key.split("/"))
    return key.endswith(PAGE_SUFFIXES) and not is_copy


def _is_notebook(name: str) -> bool:
    return FileAddress(name).key.lower().endswith(".ipynb")


def _most_bytes(name: str) -> int:
    """Return the size of the largest file that is read; the pictures of a notebook are not text."""
    return MAX_RECORD if _is_notebook(name) else MAX_PAGE


def _text(name: str, data: bytes) -> str | None:
    """Return a file as Markdown; None if it is a notebook that cannot be read."""
    return notebook_markdown(decode(data)) if _is_notebook(name) else decode(data)
