"""Puts the files that a Markdown file includes into its text."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable
from urllib.parse import unquote

from .front_matter import split_front_matter

__all__ = ["INCLUDE_LOOP", "MISSING_INCLUDE", "has_includes", "is_fragment", "with_includes"]

INCLUDE_LOOP = "include of a file that includes this one, or too many includes"
MISSING_INCLUDE = "include of a missing file"

_MAX_DEPTH = 16
_MAX_INCLUDES = 1000
_MAX_LENGTH = 8 << 20
_INCLUDE = re.compile(
    r"^(?P<before>[ \t>]*)?(?:"
    r"--8<--[ \t]+[\"'](?P<snippet>[^\"'\n]+)[\"']"
    r"|\{%-?[ \t]*include(?:-markdown|_relative)?[ \t]+[\"']?(?P<jekyll>[^\s\"'%]+\.\w+)[^%\n]*%\}"
    r"|<(?P<component>[A-Z]\w*)[^<>\n]*/>)"
    r"|\[!INCLUDE[ \t]*\[[^\]\n]*\][ \t]*\((?P<docfx>[^)\s]+)[^)\n]*\)[ \t]*\]",
    re.MULTILINE | re.IGNORECASE,
)
_IMPORT = re.compile(r"^import[ \t]+(\w+)[ \t]+from[ \t]+[\"']([^\"'\n]+\.mdx?)[\"']", re.MULTILINE)
_LINE_START = re.compile(r"[ \t>]*(?:[-*+]|\d{1,9}[.)])?[ \t]*")
_REFERENCE = re.compile(
    r"(\]\([ \t]*<?|^ {0,3}\[[^\]\n]+\]:[ \t]*<?)(?![a-zA-Z][\w+.-]*:|[/#<])(?=\S)", re.M
)
_FRAGMENT_FOLDERS = frozenset({"includes", "_includes", "_partials", "_snippets"})
_TITLE = re.compile(r"\s*# ")


def has_includes(text: str) -> bool:
    """Return whether a file may include others."""
    return _INCLUDE.search(text) is not None


def is_fragment(path: str, text: str) -> bool:
    """Return whether a file is only a part of other pages.

    So are the files of a folder for includes, and those without a title whose name starts with an
    underline, as Docusaurus and Jekyll write them.
    """
    *folders, name = path.split("/")
    if not _FRAGMENT_FOLDERS.isdisjoint(folders):
        return True
    if not name.startswith("_") or name.lower().startswith("_index."):
        return False
    front_matter, markdown = split_front_matter(text)
    return not front_matter.title and _TITLE.match(markdown) is None


def with_includes(
    path: str, text: str, read: Callable[[str], str | None], drops: Counter[str]
) -> str:
    """Replace each include by the text of its file, without its front matter.

    Relative links of the included text are rewritten, and what is included in a quotation or an
    item of a list stays in it. A file that includes itself, by others as well, is left out there.

    Args:
        path: the path of the file below its folder.
        text: the content of the file.
        read: returns the content of the file at a path below the folder, or None if there is none.
        drops: the counter of reasons.
    """
    return _Includes(read, drops).expand(text, (path,))


class _Includes:
    def __init__(self, read: Callable[[str], str | None], drops: Counter[str]) -> None:
        self.read = read
        self.drops = drops
        self.number = self.length = 0

    def expand(self, text: str, files: tuple[str, ...]) -> str:
        """Return the text of the last of these files, each of which includes the next one."""
        components = dict(_IMPORT.findall(text))

        def replaced(match: re.Match[str]) -> str:
            name = match["docfx"] or match["snippet"] or match["jekyll"]
            name = name or components.get(match["component"])
            if name is None:
                return match[0]
            before = match["before"] or ""
            line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()] + before
            return before + self._included(_path(files[-1], name), line, files)

        return _INCLUDE.sub(replaced, text)

    def _included(self, path: str, before: str, files: tuple[str, ...]) -> str:
        content = None if path in files else self.read(path)
        self.number += 1
        self.length += len(content or "")
        too_many = self.number > _MAX_INCLUDES or self.length > _MAX_LENGTH
        if path in files or too_many or len(files) > _MAX_DEPTH:
            self.drops[INCLUDE_LOOP] += 1
            return ""
        if content is None:
            self.drops[MISSING_INCLUDE] += 1
            return ""
        markdown = self.expand(split_front_matter(content)[1].strip(), (*files, path))
        markdown = _moved(markdown, posixpath.dirname(path), posixpath.dirname(files[-1]))
        if _LINE_START.fullmatch(before) is None:
            return markdown
        return markdown.replace("\n", "\n" + re.sub(r"[^>\s]", " ", before))


def _moved(markdown: str, folder: str, into: str) -> str:
    """Make relative links of a file in one folder relative to another folder."""
    way = posixpath.relpath(folder or ".", into or ".")
    if way == ".":
        return markdown
    return _REFERENCE.sub(lambda match: f"{match[0]}{way}/", markdown)


def _path(path: str, reference: str) -> str:
    """Return the path below the folder of a file that another one includes."""
    reference = unquote(reference).partition("#")[0]
    for root in ("~/", "@site/", "/"):
        if reference.startswith(root):
            return posixpath.normpath(reference[len(root) :])
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), reference))
