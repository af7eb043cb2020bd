"""Bytes become an HTML tree, within bounds, and what its head says."""

from __future__ import annotations

import re
from dataclasses import dataclass

from resiliparse.parse.encoding import bytes_to_str, detect_encoding, map_encoding_to_html5
from selectolax.lexbor import LexborHTMLParser, LexborNode

from ..pages import Dropped

MAX_PAGE = 8 << 20
"""Bytes of the longest HTML that is parsed."""
MAX_DEPTH = 1000
MAX_REFRESH = 10
"""Seconds after which a page that leads on is still a redirect."""
_MAX_ATTRIBUTES = 4000
_MANY_TAGS, _MAX_TAGS = 10_000, 1_000_000
_FORMATTING = frozenset(
    {"a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong"}
    | {"tt", "u"}
)
_UNNESTED = _FORMATTING | frozenset(
    {"area", "base", "body", "br", "col", "dd", "dt", "embed", "head", "hr", "html", "img"}
    | {"input", "li", "link", "meta", "option", "p", "param", "source", "tbody", "td", "tfoot"}
    | {"th", "thead", "tr", "track", "wbr"}
)
_TOKEN = re.compile(r"<(?:(!--)|(/?)([a-zA-Z][^\s/>]*))")
_ATTRIBUTE = r"""[\s/]*+[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>]*+))?+"""
_OVERFULL_TAG = re.compile(rf"<[a-zA-Z][^\s/>]*+(?:{_ATTRIBUTE}){{{_MAX_ATTRIBUTES}}}")
_REFRESH = re.compile(
    r"""\s*(\d{1,4})[\d.]*\s*[;,]\s*(?:url\s*=\s*)?["']?([^"']+)""", re.IGNORECASE
)
_LANGUAGE = re.compile(r"\s*([a-zA-Z]{2,3})(?![a-zA-Z])")


@dataclass(slots=True)
class Document:
    """A parsed HTML page.

    Attributes:
        body: its ``<body>``.
        title: its ``<title>``.
        base: ``href`` of its ``<base>``.
        canonical: ``href`` of ``<link rel="canonical">``.
        refresh: where a ``<meta http-equiv="refresh">`` leads within ten seconds.
        language: what it says of its language, a code of two or three letters.
    """

    tree: LexborHTMLParser
    body: LexborNode | None
    title: str = ""
    base: str | None = None
    canonical: str | None = None
    refresh: str | None = None
    language: str | None = None


def decode(data: bytes, declared: str | None = None) -> str:
    """Decode a page: UTF-8 where it is that, else as declared, else as detected.

    Args:
        data: the page.
        declared: the encoding that the HTTP header names.
    """
    if b"\0" not in data[:1024] and b"\x1b" not in data[:1024]:
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError:
            pass
    known = map_encoding_to_html5(declared, fallback_utf8=False) if declared else None
    encoding = known or detect_encoding(data, from_html_meta=True) or "cp1252"
    return bytes_to_str(data, encoding, errors="replace", fallback_encodings=("cp1252",))


def read_document(text: str) -> Document | Dropped:
    """Parse a page, or say why it is out of bounds."""
    if len(text) > MAX_PAGE:
        return Dropped("page over 8 MiB")
    if _overfull(text):
        return Dropped("page of too many elements, or nested too deeply")
    tree = LexborHTMLParser(text)
    document = Document(tree, tree.body)
    root = tree.root
    for node in (root, tree.body):
        attributes = node.attributes if node is not None else {}
        written = attributes.get("lang") or attributes.get("xml:lang") or ""
        if document.language is None and (found := _LANGUAGE.match(written)):
            document.language = found[1].lower()
    child = tree.head.child if tree.head is not None else None
    while child is not None:
        _read_head(document, child)
        child = child.next
    return document


def _read_head(document: Document, node: LexborNode) -> None:
    tag = node.tag
    if tag == "title" and not document.title:
        document.title = " ".join(node.text().split())
    elif tag == "base" and document.base is None:
        document.base = node.attributes.get("href")
    elif tag == "link":
        attributes = node.attributes
        if (attributes.get("rel") or "").lower() == "canonical" and document.canonical is None:
            document.canonical = attributes.get("href")
    elif tag == "meta":
        attributes = node.attributes
        name, content = (attributes.get("http-equiv") or "").lower(), attributes.get("content")
        if name == "refresh" and (found := _REFRESH.match(content or "")):
            document.refresh = found[2].strip() if int(found[1]) <= MAX_REFRESH else None
        elif name == "content-language" and (found := _LANGUAGE.match(content or "")):
            document.language = document.language or found[1].lower()


def _overfull(text: str) -> bool:
    """Whether a page takes too much memory, or time that grows with the square of its length."""
    tags = text.count("<")
    if tags > _MAX_TAGS:
        return True
    if len(text) > 2 * _MAX_ATTRIBUTES and _OVERFULL_TAG.search(text):
        return True
    return tags > _MANY_TAGS and _depth(text) > MAX_DEPTH


def _depth(text: str) -> int:
    """How deep elements are nested at most, but for those that close by themselves."""
    depth = deepest = position = 0
    while found := _TOKEN.search(text, position):
        comment, closing, name = found.groups()
        position = found.end()
        if comment:
            end = text.find("-->", position)
            position = len(text) if end < 0 else end
            continue
        name = name.lower()
        if name in _UNNESTED:
            continue
        depth = max(0, depth - 1) if closing else depth + 1
        deepest = max(deepest, depth)
        if name in ("script", "style") and not closing:
            end = text.find("</", position)
            position = len(text) if end < 0 else end
    return deepest
