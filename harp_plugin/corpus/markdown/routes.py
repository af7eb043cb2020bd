"""Addresses that the configuration of a site makes of paths: rewrites and permalinks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import PurePosixPath
from typing import NamedTuple

from .front_matter import FrontMatter

__all__ = ["Route", "address_by_route", "find_routes"]

_PAIR = re.compile(
    r"""(?:["'`]([^"'`\n]+)["'`]|([\w-]+))[ \t]*[:=]"""
    r"""[ \t]*["'`]?([^\s"'`,{}()\[\]]+)(?=[\s"'`,}]|\Z)"""
)
_TARGET = re.compile(r"""path["']?[ \t]*[:=][ \t]*["']?\{?/?([^\s"'{},]+)""")
_STYLES = dict.fromkeys(("date", "pretty"), "/:categories/:year/:month/:day/:title")
_STYLES["none"] = "/:categories/:title"
"""The patterns of Jekyll's styles of ``permalink``, by their names."""
_POST = re.compile(r"(?:.*/)?_posts/.+")
_PARAMETER = re.compile(r"(/?):(\w+)([*+?]?)")
_MOST_PARAMETERS = 3
_NO_SLUG = re.compile(r"[^\w\s.+~#@-]")
_SUFFIX = re.compile(r"(?:\.[a-z]{2}(?:-\w+)?)?\.\w+\Z")
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)")


class Route(NamedTuple):
    """A rule of VitePress's ``rewrites``, of Hugo's ``permalinks`` or Jekyll's ``permalink``.

    Attributes:
        path: the pattern of paths below a folder of contents.
        address: their address, in which ``:name`` stands for a part of the path or of the page.
    """

    path: re.Pattern[str]
    address: str


def find_routes(text: str, blocks: str) -> Iterator[Route]:
    """Give the rules of a configuration, each of which is a path or a section, and an address.

    Args:
        text: the text of the configuration.
        blocks: a pattern of the parts of it that hold rules.
    """
    for block in re.finditer(blocks, text):
        for quoted, word, address in _PAIR.findall(block[0]):
            if word == "permalink":
                address = _STYLES.get(address, address)
                yield from [Route(_POST, address)] * ("/" in address)
                continue
            is_path = "/" in quoted or quoted.endswith(".md")
            if word == "pattern" and (target := _TARGET.search(text, block.end())):
                quoted, is_path = re.sub(r"\*+", ":rest*", target[1]), True
            with suppress(re.error):
                yield Route(_pattern(quoted if is_path else f"{quoted or word}/:rest+"), address)


def _pattern(path: str) -> re.Pattern[str]:
    """Return the pattern of a path with parameters such as ``:name`` and ``:names*``.

    Raises:
        re.error: two have one name, or there are so many that a search may take very long.
    """
    if path.count(":") > _MOST_PARAMETERS:
        raise re.error("too many parameters")
    pieces, position = [], 0
    for parameter in _PARAMETER.finditer(path):
        slash, name, number = parameter.groups()
        value = f"{slash}(?P<{name}>{'.+' if number in ('*', '+') else '[^/]+'})"
        optional = "?" if number in ("*", "?") else ""
        pieces += [re.escape(path[position : parameter.start()]), f"(?:{value}){optional}"]
        position = parameter.end()
    return re.compile("".join([*pieces, re.escape(path[position:])]))


def address_by_route(routes: Iterable[Route], path: str, fields: FrontMatter) -> str:
    """Return the address of a page by the first rule that gives one; empty where none does.

    Args:
        routes: the rules.
        path: the path below a folder of contents.
        fields: the front matter of the page.
    """
    for address, match in ((route.address, route.path.fullmatch(path)) for route in routes):
        values = _tokens(path, fields) | match.groupdict("") if match else {}
        if match and all(name in values for _, name, _ in _PARAMETER.findall(address)):
            return _PARAMETER.sub(r"\1{\2}", address).format_map(values).strip("/")
    return ""


def _tokens(path: str, fields: FrontMatter) -> dict[str, str]:
    """Return the tokens of Hugo's permalinks that have a value for a page."""
    file = PurePosixPath(path)
    file = file.parent if file.stem == "index" else file
    name, title, slug = (
        re.sub(r"[\s-]+", "-", _NO_SLUG.sub("", text.lower()).strip())
        for text in (_SUFFIX.sub("", file.name), fields.text("title"), fields.text("slug"))
    )
    post = _POST.fullmatch(path) and _DATE.match(name)
    if post:
        name = title = slug or name[post.end() + 1 :]
    date = _DATE.match(str(fields.fields.get("date"))) or post
    values = dict(zip(("year", "month", "day"), date.groups(), strict=True)) if date else {}
    values |= {"categories": fields.text("category") or "/".join(fields.texts("categories"))}
    values |= {"section": path.partition("/")[0], "sections": str(file.parent)}
    values |= {"title": title, "slug": slug or title}
    values |= dict.fromkeys(("filename", "contentbasename"), name)
    values |= dict.fromkeys(("slugorfilename", "slugorcontentbasename"), slug or name)
    values = {token: value for token, value in values.items() if value}
    return {"categories": "", "output_ext": ""} | values
