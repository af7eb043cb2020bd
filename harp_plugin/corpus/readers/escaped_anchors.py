"""WikiExtractor's text: escaped for HTML, with anchors whose targets are quoted as in URLs."""

from __future__ import annotations

import html
import re
from collections import Counter
from itertools import takewhile
from urllib.parse import unquote

from ...text import normalise_title
from ..markup import Link, LinkedText
from ..wikitext import CANONICAL_NAMESPACES
from .paragraphs import clean

_ANCHOR = re.compile(r'<a href="([^"]*)">|(</a>)')
_EXTERNAL = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//|(?:mailto|news|tel|sips?|urn|geo):", re.I)
_IMPOSSIBLE = re.compile(r"[\[\]{}|<>]")
_WIKIS = re.compile(r"w|wikt|wiktionary", re.I)
_LIST_TAG = re.compile(r"</?<?(?:ul|ol|dl|li|dt|dd|b|i)>")
_MOST_TRAIL = 64


def decoded(escaped: str, drops: Counter[str]) -> LinkedText:
    """Turn the anchors in a line into links, with the letters that trail them."""
    text = html.unescape(escaped)
    body = LinkedText("", [])
    pieces: list[str] = []
    opened: list[tuple[int, int, str]] = []
    position = length = 0
    for mark in _ANCHOR.finditer(text):
        pieces.append(text[position : mark.start()])
        length += mark.start() - position
        position = mark.end()
        if mark[1] is not None:
            opened.append((length, len(body.links), mark[1]))
        elif opened:
            start, before, href = opened.pop()
            trail = len("".join(takewhile(str.islower, text[position : position + _MOST_TRAIL])))
            target = title_of(href, drops)
            if target:
                drops["link inside a link"] += len(body.links) - before
                body.links[before:] = [Link(start, length + trail, "", target)]
    drops["link without an end"] += len(opened)
    body.text = "".join([*pieces, text[position:]])
    body.substitute(_LIST_TAG, "")
    clean(body, drops)
    return body


def title_of(href: str, drops: Counter[str]) -> str | None:
    """The title that a link names; None, and a reason counted, where it is no article's.

    Args:
        href: quoted as in a URL, of text that was escaped for XML.
        drops: counter of reasons.
    """
    written = html.unescape(unquote(href)).strip()
    prefix, colon, _ = written.removeprefix(":").partition(":")
    if _EXTERNAL.match(written):
        drops["link to another site"] += 1
    elif colon and prefix.strip().replace("_", " ").lower() in CANONICAL_NAMESPACES:
        drops["link to another namespace"] += 1
    elif colon and "#" not in prefix and _WIKIS.fullmatch(prefix):
        drops["link to another wiki"] += 1
    elif _IMPOSSIBLE.search(target := normalise_title(written)):
        drops["link to an impossible title"] += 1
    elif target:
        return target
    else:
        drops["link inside the page"] += 1
    return None
