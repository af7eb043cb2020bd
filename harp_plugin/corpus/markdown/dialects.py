"""The dialects of generators of documentation: one small file each in ``data/dialects``."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import cache
from itertools import combinations
from pathlib import PurePosixPath
from typing import get_args

from ..options import DialectName
from ..word_lists import read_table
from .routes import Route, find_routes

__all__ = ["DIALECTS", "Dialect", "Layout", "configurations", "dialect", "find_layout"]

DIALECTS = get_args(DialectName)[1:]
"""The names of the dialects, in the order in which they are looked for."""
_COMMONMARK = DIALECTS[-1]
_VALUE = r"[\"']?\s*+[:=]\s*+(?:\"([^\"\n]*)\"|'([^'\n]*)'|`([^`\n]*)`|([^\s\"'`,;\[\]{}#]+))"
_SHORTCODE = re.compile(r"(?:.*/)?layouts/_?shortcodes/([^/]+)\.html")
_LANGUAGE = re.compile(r"[a-z]{2}(?:-[A-Za-z]{2,4})?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Dialect:
    """How a generator makes the addresses of pages, and what it reads in their text.

    Attributes:
        files: patterns of its configuration files.
        proof: a pattern that one of them holds if its name is that of other programs too.
        folders: where contents stand below the folder of the configuration.
        folder_settings: the settings that name such folders.
        base_settings: the settings that name the start of addresses, or a part of it.
        default_bases: starts of addresses that need no setting.
        directory_urls: whether references are relative to ``a/``, the address of ``a.md``.
        numbered: whether addresses leave out numbers at the start of names, and take ``id``.
        components: whether tags with a capital letter are components and not HTML.
        expressions: whether braces hold JavaScript, as in MDX.
        line_includes: patterns that include a file at the start of a line or of a quotation; the
            last group is the reference. Those of all dialects are read.
        includes: such patterns that may stand anywhere.
        routes: a pattern of the parts of its configuration that hold rules for addresses.
        everywhere: a pattern of what is no text even in code, and its replacement.
        parts: patterns that mark a part of a file which others include; the group is its name.
    """

    files: Sequence[str] = ()
    proof: str = ""
    folders: Sequence[str] = ()
    folder_settings: Sequence[str] = ()
    base_settings: Sequence[str] = ()
    default_bases: Sequence[str] = ()
    directory_urls: bool = False
    numbered: bool = False
    components: bool = False
    expressions: bool = False
    line_includes: Sequence[str] = ()
    includes: Sequence[str] = ()
    parts: Sequence[str] = ()
    everywhere: tuple[str, str] = ("(?!)", "")
    routes: str = "(?!)"

    @property
    def pattern(self) -> re.Pattern[str]:
        """The pattern of the paths of configuration files; its group is the folder before them."""
        names = "|".join(map(translate, self.files)) or r"\Z."
        return re.compile(rf"((?:[^/]+/)*?)(?:{names})")


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the pages of a folder stand on its site.

    Attributes:
        name: the name of the dialect.
        folders: the folders of contents, below the folder.
        bases: the starts of addresses, such as ``/docs/`` and ``https://example.org/``.
        routes: rules for the addresses of pages.
        code: names of the site's own shortcodes of Hugo that highlight code.
    """

    name: str = _COMMONMARK
    folders: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    routes: tuple[Route, ...] = ()
    code: frozenset[str] = frozenset()


@cache
def dialect(name: str) -> Dialect:
    """Return a dialect by its name."""
    return Dialect(**read_table(f"dialects/{name}.toml"))


def configurations(paths: Iterable[str]) -> list[str]:
    """Return the paths of the files whose settings decide about the addresses of pages."""
    dialects = (dialect(name) for name in DIALECTS)
    patterns = [own.pattern for own in dialects if own.base_settings or own.folder_settings]
    return [path for path in paths if any(pattern.fullmatch(path) for pattern in patterns)]


def find_layout(
    paths: Sequence[str], read: Callable[[str], str | None], name: str = "auto"
) -> Layout:
    """Find the generator of a folder by its configuration, and where pages stand on its site.

    Of several configurations, those nearest to the top count. Settings are found by their names,
    whether the configuration is TOML, YAML, JSON or JavaScript, which is never run.

    Args:
        paths: the paths of all files below the folder.
        read: returns the text of one of them.
        name: the name of the dialect, or ``auto``.
    """
    found: dict[tuple[int, int], dict[str, str]] = defaultdict(lambda: defaultdict(str))
    candidates = DIALECTS if name == "auto" else (name,)
    for rank, own in enumerate(map(dialect, candidates)):
        pattern = own.pattern
        for path in paths:
            match = pattern.fullmatch(path)
            if match is not None and re.search(own.proof, text := read(path) or ""):
                found[match[1].count("/"), rank][match[1]] += f"{text}\n"
    if not found:
        return Layout(candidates[-1])
    nearest = min(found)
    name = candidates[nearest[1]]
    own = dialect(name)
    existing = {str(folder) for path in paths for folder in PurePosixPath(path).parents}
    folders: dict[str, None] = {}
    bases: dict[str, None] = {}
    routes: list[Route] = []
    for folder, text in found[nearest].items():
        names = [*_settings(text, own.folder_settings), *own.folders, "."]
        within = (posixpath.normpath(posixpath.join(folder, written)) for written in names)
        folders |= dict.fromkeys(inside for inside in within if inside in existing)
        bases |= dict.fromkeys(_bases([*_settings(text, own.base_settings), *own.default_bases]))
        routes += find_routes(text, own.routes)
    languages = sorted(
        folder
        for folder in existing
        if posixpath.dirname(folder) in folders and _LANGUAGE.fullmatch(posixpath.basename(folder))
    )
    starts = tuple(sorted(bases, key=len, reverse=True))
    shortcodes = ((s[1], read(s[0]) or "") for s in filter(None, map(_SHORTCODE.fullmatch, paths)))
    code = frozenset(name for name, html in shortcodes if ".Inner" in html and "ighlight" in html)
    return Layout(name, (*folders, *languages), starts, tuple(routes), code)


def _settings(text: str, names: Sequence[str]) -> list[str]:
    """Return the values of settings in the order of the names."""
    return [
        "".join(match.groups(""))
        for name in names
        for match in re.finditer(rf"(?<![\w.-]){re.escape(name)}{_VALUE}", text)
    ]


def _bases(values: Sequence[str]) -> list[str]:
    """Return the starts of addresses that settings name: paths, sites, and both together."""
    sites = [value.rstrip("/") for value in values if value.startswith(("http://", "https://"))]
    paths = [re.sub("^https?://[^/]*", "", value).strip("/") for value in values]
    pairs = (f"{first}/{second}" for first, second in combinations(filter(None, paths), 2))
    starts = [f"/{path}/" for path in [*paths, *pairs] if path]
    return [*starts, *(f"{site}{start}" for site in sites for start in ("/", *starts))]
