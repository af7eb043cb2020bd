"""Decodes and parses HTML within bounds, and reads the head of the page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from resiliparse.parse.encoding import bytes_to_str, detect_encoding, map_encoding_to_html5
from selectolax.lexbor import LexborHTMLParser, LexborNode

from ..pages import Dropped
from ..word_lists import NAMES

__all__ = ["LONG_PAGE", "MAX_PAGE", "Document", "decode", "read_document", "walk"]

MAX_PAGE = 8 << 20
"""The size of the longest HTML that is parsed, in bytes."""
LONG_PAGE = Dropped("page over 8 MiB")
_MAX_DEPTH = 1000
_MAX_REFRESH = 10
"""The longest delay, in seconds, with which a meta refresh counts as a redirect."""
_MAX_ATTRIBUTES = 4000
_MANY_TAGS, _MAX_TAGS = 10_000, 1_000_000
_FORMATTING = frozenset(NAMES["kinds_of_elements"]["formatting"])
_UNPARSED = ("iframe", "noembed", "script", "select", "style", "textarea", "title", "xmp")
_HERE = f"\"'>--></{'></'.join(_UNPARSED)}><wbr id=harp-here>"
"""Ends a tag, a comment and unparsed elements, and marks where a part of a page ends."""
_TITLE = "div.headertitle > :is(div.title, h1)"
"""Where Doxygen writes the title of a page, without the name of the project."""
_ATTRIBUTE = r"""[\s/]*+[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:"[^"]*+"|'[^']*+'|[^\s>]*+))?+"""
_OVERFULL_TAG = re.compile(rf"<[a-zA-Z][^\s/>]*+(?:{_ATTRIBUTE}){{{_MAX_ATTRIBUTES}}}")
_REFRESH = re.compile(
    r"""\s*(\d{1,4})[\d.]*\s*[;,]\s*(?:url\s*=\s*)?["']?([^"']+)""", re.IGNORECASE
)
_XHTML = re.compile(r"<\?xml\b|//DTD XHTML|http://www\.w3\.org/1999/xhtml")
_EMPTY = re.compile(
    rf"<({'|'.join(_UNPARSED)})\b[^<>]*?(/>|>(?:[^<]++|<(?!/\1\b))*+)", re.IGNORECASE
)
"""An element that is not parsed: closed at once, as XML allows, or with what it holds."""
_LANGUAGE = re.compile(r"\s*([a-zA-Z]{2,3})(?![a-zA-Z])")


@dataclass(slots=True)
class Document:
    """A parsed HTML page.

    Attributes:
        tree: the parser, which owns the memory of the nodes.
        body: the ``<body>`` element.
        title: the text of ``<title>``.
        base: the ``href`` of ``<base>``.
        canonical: the ``href`` of ``<link rel="canonical">``.
        refresh: the address of a ``<meta http-equiv="refresh">`` of at most ten seconds.
        language: the language code that the page declares, of two or three letters.
    """

    tree: LexborHTMLParser
    body: LexborNode | None
    title: str = ""
    base: str | None = None
    canonical: str | None = None
    refresh: str | None = None
    language: str | None = None


def decode(data: bytes, declared: str | None = None) -> str:
    """Decode a page as UTF-8, else in the declared encoding, else in the detected one.

    A page is UTF-8 with broken bytes if most of its characters that are not ASCII are whole.

    Args:
        data: the bytes of the page.
        declared: the encoding that the HTTP header names.
    """
    if b"\0" not in data[:1024] and b"\x1b" not in data[:1024]:
        with suppress(UnicodeDecodeError):
            return data.decode("utf-8-sig")
        text = data.decode("utf-8-sig", "replace")
        if 2 * text.count("\ufffd") < len(text) - len(text.encode("ascii", "ignore")):
            return text
    encoding = map_encoding_to_html5(declared, fallback_utf8=False) if declared else None
    encoding = encoding or detect_encoding(data, from_html_meta=True) or "cp1252"
    return bytes_to_str(data, encoding, errors="replace", fallback_encodings=("cp1252",))


def read_document(text: str) -> Document | Dropped:
    """Parse a page, or say why it exceeds the bounds."""
    if len(text) > MAX_PAGE:
        return LONG_PAGE
    if _XHTML.search(text, 0, 1024):
        text = _EMPTY.sub(_closed, text)
    if reason := _excess(text):
        return Dropped(reason)
    tree = LexborHTMLParser(text)
    document = Document(tree, tree.body)
    for node in (tree.root, tree.body):
        attributes = node.attributes if node is not None else {}
        declared = attributes.get("lang") or attributes.get("xml:lang") or ""
        if document.language is None and (match := _LANGUAGE.match(declared)):
            document.language = match[1].lower()
    for child in tree.head.iter() if tree.head is not None else ():
        _read_head(document, child)
    if "headertitle" in text and tree.body and (title := tree.body.css_first(_TITLE)):
        for groups in title.css("div.ingroups"):
            groups.decompose()
        document.title = " ".join(title.text().split())
    return document


def _closed(element: re.Match[str]) -> str:
    """Close an element as HTML asks for."""
    return f"{element[0][:-2]}></{element[1]}>" if element[2] == "/>" else element[0]


def _read_head(document: Document, node: LexborNode) -> None:
    tag, attributes = node.tag, node.attributes
    name, content = (attributes.get("http-equiv") or "").lower(), attributes.get("content") or ""
    if tag == "title":
        document.title = document.title or " ".join(node.text().split())
    elif tag == "base" and document.base is None:
        document.base = attributes.get("href")
    elif tag == "link" and (attributes.get("rel") or "").lower() == "canonical":
        document.canonical = document.canonical or attributes.get("href")
    elif tag == "meta" and name == "refresh" and (match := _REFRESH.match(content)):
        document.refresh = match[2].strip() if int(match[1]) <= _MAX_REFRESH else None
    elif tag == "meta" and name == "content-language" and (match := _LANGUAGE.match(content)):
        document.language = document.language or match[1].lower()


def walk(root: LexborNode) -> Iterator[tuple[LexborNode, bool]]:
    """Give the start and the end of each node below an element, without recursion."""
    path: list[LexborNode] = []
    node = root.child
    while node is not None:
        yield node, True
        child = node.child
        if child is not None:
            path.append(node)
            node = child
            continue
        yield node, False
        while node.next is None and path:
            node = path.pop()
            yield node, False
        node = node.next


def _excess(text: str) -> str | None:
    """Return why parsing would need too much memory, or time quadratic in the length."""
    tags = text.count("<")
    if tags > _MAX_TAGS:
        return f"page of over {_MAX_TAGS:,} tags"
    if len(text) > 2 * _MAX_ATTRIBUTES and _OVERFULL_TAG.search(text):
        return f"page with a tag of over {_MAX_ATTRIBUTES:,} attributes"
    if tags > _MANY_TAGS and _is_deep(text):
        return f"page of elements nested over {_MAX_DEPTH:,} deep"
    return None


def _is_deep(text: str) -> bool:
    """Return whether the parser is over 1,000 elements deep, or in a template of as many tags.

    Its time is quadratic in the depth, so that parts are parsed first, each longer by a tenth.
    """
    checked = _MANY_TAGS
    for number, tag in enumerate(re.finditer("<", text), 1):
        if number < checked:
            continue
        checked = checked * 11 // 10
        part = text[: tag.start()]
        node = LexborHTMLParser(part + _HERE).css_first("#harp-here")
        depth = 0
        while node is not None and depth <= _MAX_DEPTH:
            depth += node.tag not in _FORMATTING
            node = node.parent
        depth = depth or part.count("<", max(part.rfind("<template"), 0))
        if depth > _MAX_DEPTH:
            return True
    return False
