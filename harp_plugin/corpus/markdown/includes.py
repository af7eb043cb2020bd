"""Puts the files that a Markdown file includes into its text."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Callable
from pathlib import PurePosixPath
from urllib.parse import unquote

from .dialects import DIALECTS, dialect
from .front_matter import split_front_matter

__all__ = ["CODE_INCLUDE", "INCLUDE_LOOP", "MISSING_INCLUDE", "is_fragment", "with_includes"]

INCLUDE_LOOP = "include of a file that includes this one, or too many includes"
MISSING_INCLUDE = "include of a missing file"
CODE_INCLUDE = "include of a file that is no Markdown"

_LONGEST_PREFIX = 200
_MAX_DEPTH = 16
_MAX_INCLUDES = 1000
_MAX_LENGTH = 8 << 20
_DIALECTS = [dialect(name) for name in DIALECTS]
_INCLUDE = re.compile(
    rf"^(?P<before>[ \t>]*+)(?:{'|'.join(p for own in _DIALECTS for p in own.line_includes)})"
    rf"|{'|'.join(pattern for own in _DIALECTS for pattern in own.includes)}",
    re.MULTILINE | re.IGNORECASE,
)
_SIGNS = ("{{", "{%", "{!", "{*", "{include}", "@include", "!include", "8<", ".md'", '.md"', ".mdx")
"""What stands in each text with an include, in lower case; to look for them is quick."""
_MARK = re.compile(
    rf"^[^\n]*?(?:{'|'.join(pattern for own in _DIALECTS for pattern in own.parts)})[^\n]*\n?",
    re.MULTILINE,
)
_TEXTS = (".md", ".mdx", ".markdown", ".txt", ".inc", "")
_IMPORT = re.compile(r"(?:^|;[ \t]*)import\s+(\w+)\s+from\s+[\"']([^\"'\n]+\.mdx?)[\"']", re.M)
_LINE_START = re.compile(r"[ \t>]*(?:[-*+]|\d{1,9}[.)])?[ \t]*")
_REFERENCE = re.compile(
    r"(\]\([ \t]*<?|^ {0,3}\[[^\]\n]+\]:[ \t]*<?)(?![a-zA-Z][\w+.-]*:|[/#<])(?=\S)", re.M
)
_FRAGMENT_FOLDERS = frozenset({"includes", "_common", "_includes", "_partials", "_snippets"})
_TITLE = re.compile(r"\s*# ")


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
    return not front_matter.text("title") and _TITLE.match(markdown) is None


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
        folded = text.lower()
        if not any(sign in folded for sign in _SIGNS):
            return text
        components = dict(_IMPORT.findall(text))

        def replaced(match: re.Match[str]) -> str:
            written = match[match.lastindex or 0].split("\n")
            if match["component"] and (written := [components.get(match["component"], "")]) == [""]:
                return match[0]
            before = match["before"] or ""
            start = max(0, match.start() - _LONGEST_PREFIX)
            line = text[start : match.start()].rpartition("\n")[2] + before
            names = (name.strip() for name in written if name and name.strip()[:1] not in ("", ";"))
            return before + "\n\n".join(self._included(name, line, files) for name in names)

        return _INCLUDE.sub(replaced, text)

    def _included(self, name: str, before: str, files: tuple[str, ...]) -> str:
        """Return the text of a file, or of a part of it, as ``file.md:part`` or ``file.md:2:5``."""
        name, colon, part = name.partition(":") if "://" not in name else (name, "", "")
        self.number += 1
        too_many = self.number > _MAX_INCLUDES or self.length > _MAX_LENGTH
        paths = [] if too_many or len(files) > _MAX_DEPTH else _paths(files[-1], name)
        contents = ((path, self.read(path)) for path in paths if path not in files)
        path, content = next((pair for pair in contents if pair[1] is not None), ("", None))
        if content is None:
            is_loop = not paths or not set(files).isdisjoint(paths)
            self.drops[INCLUDE_LOOP if is_loop else MISSING_INCLUDE] += 1
            return ""
        self.length += len(content)
        if posixpath.splitext(path)[1].lower() not in _TEXTS:
            self.drops[CODE_INCLUDE] += 1
            return ""
        content = _part(split_front_matter(content)[1], part if colon else "")
        markdown = self.expand(content.strip(), (*files, path))
        markdown = _moved(markdown, posixpath.dirname(path), posixpath.dirname(files[-1]))
        if _LINE_START.fullmatch(before) is None:
            return markdown
        return markdown.replace("\n", "\n" + re.sub(r"[^>\s]", " ", before))


def _part(text: str, name: str) -> str:
    """Return the part of a text between the marks of this name, or the lines of these numbers."""
    if numbers := re.fullmatch(r"(\d{0,9})(?::(\d{0,9}))?", name):
        first, last = numbers[1] or "1", numbers[2]
        last = numbers[1] if name and last is None else last
        lines = text.split("\n")[max(int(first) - 1, 0) : int(last) if last else None]
        return _MARK.sub("", "\n".join(lines))
    ends: list[int] = []
    for mark in _MARK.finditer(text):
        if name == mark[mark.lastindex or 0]:
            ends += mark.span()[::-1] if not ends else mark.span()
    return _MARK.sub("", text[ends[0] : ends[2]] if len(ends) > 3 else "")


def _moved(markdown: str, folder: str, into: str) -> str:
    """Make relative links of a file in one folder relative to another folder."""
    way = posixpath.relpath(folder or ".", into or ".")
    if way == ".":
        return markdown
    return _REFERENCE.sub(lambda match: f"{match[0]}{way}/", markdown)


def _paths(path: str, reference: str) -> list[str]:
    """Return the paths below the folder that an include in a file may name, the likeliest first."""
    reference = unquote(reference).replace(r"\_", "_").partition("#")[0].strip("\"'<>")
    folders = [str(folder) for folder in PurePosixPath(path).parents]
    for root in ("~/", "@site/", "@/", "/"):
        if reference.startswith(root):
            reference, folders = reference[len(root) :], folders[::-1]
            break
    names = [reference, *(f"{name}/{reference}" for name in sorted(_FRAGMENT_FOLDERS))]
    return [posixpath.normpath(posixpath.join(f, name)) for name in names for f in folders]
