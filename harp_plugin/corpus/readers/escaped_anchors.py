"""Decodes anchors that are escaped for HTML and whose targets are quoted as in URLs.

WikiExtractor and KILT write such anchors.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from itertools import takewhile
from urllib.parse import unquote

from ...text import normalize_title
from ..markup import Link, LinkedText
from ..wikitext import CANONICAL_NAMESPACES
from ..wikitext.cleanup import clean_paragraph

__all__ = ["decode_paragraph", "link_target", "link_trail"]

_ANCHOR = re.compile(r'<a href="([^"]*)">|(</a>)')
_EXTERNAL = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//|(?:mailto|news|tel|sips?|urn|geo):", re.I)
_IMPOSSIBLE = re.compile(r"[\[\]{}|<>]")
_WIKIS = re.compile(r"w|wikt|wiktionary", re.I)
_LIST_TAG = re.compile(r"</?<?(?:ul|ol|dl|li|dt|dd|b|i)>")
_MAX_TRAIL = 64


def decode_paragraph(escaped: str, drops: Counter[str]) -> LinkedText:
    """Decode a paragraph and turn its anchors into links, each with its trail.

    Args:
        escaped: a line of WikiExtractor's text.
        drops: the counter of reasons.
    """
    text = html.unescape(escaped)
    body = LinkedText("", [])
    pieces: list[str] = []
    open_anchors: list[tuple[int, int, str]] = []
    position = length = 0
    for mark in _ANCHOR.finditer(text):
        pieces.append(text[position : mark.start()])
        length += mark.start() - position
        position = mark.end()
        if mark[1] is not None:
            open_anchors.append((length, len(body.links), mark[1]))
        elif open_anchors:
            start, links, href = open_anchors.pop()
            target = link_target(href, drops)
            if target:
                end = length + len(link_trail(text, position))
                drops["link inside a link"] += len(body.links) - links
                body.links[links:] = [Link(start, end, "", target)]
    drops["link without an end"] += len(open_anchors)
    body.text = "".join([*pieces, text[position:]])
    body.substitute(_LIST_TAG, "")
    clean_paragraph(body, drops)
    return body


def link_trail(text: str, start: int, end: int | None = None) -> str:
    """Return the lower-case letters behind an anchor, which MediaWiki shows as a part of it.

    Args:
        text: the text that holds the anchor.
        start: the offset behind the anchor.
        end: the offset at which the trail must end, if there is one.
    """
    limit = start + _MAX_TRAIL if end is None else min(end, start + _MAX_TRAIL)
    return "".join(takewhile(str.islower, text[start:limit]))


def link_target(href: str, drops: Counter[str]) -> str | None:
    """Return the title that a link names, or None where it names no article.

    Args:
        href: the target, quoted as in a URL, from a text that is escaped for XML.
        drops: the counter of reasons, for links that name no article.
    """
    name = html.unescape(unquote(href)).strip()
    prefix, colon, _ = name.removeprefix(":").partition(":")
    if _EXTERNAL.match(name):
        drops["link to another site"] += 1
    elif colon and prefix.strip().replace("_", " ").lower() in CANONICAL_NAMESPACES:
        drops["link to another namespace"] += 1
    elif colon and "#" not in prefix and _WIKIS.fullmatch(prefix):
        drops["link to another wiki"] += 1
    elif _IMPOSSIBLE.search(title := normalize_title(name)):
        drops["link to an impossible title"] += 1
    elif title:
        return title
    else:
        drops["link inside the page"] += 1
    return None
