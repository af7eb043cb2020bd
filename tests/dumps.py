"""Writes small MediaWiki dumps for tests."""

from __future__ import annotations

import bz2
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

_HEAD = (
    '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" version="0.10" xml:lang="en">'
    "<siteinfo><sitename>Wikipedia</sitename><dbname>enwiki</dbname><case>first-letter</case>"
    '<namespaces><namespace key="0" /><namespace key="1">Talk</namespace>'
    '<namespace key="6">File</namespace><namespace key="14">Category</namespace>'
    '<namespace key="10">Template</namespace></namespaces></siteinfo>'
)


def page_xml(title: str, text: str, *, redirect: str | None = None, namespace: int = 0) -> str:
    """One ``<page>``."""
    to = f"<redirect title={quoteattr(redirect)} />" if redirect is not None else ""
    return (
        f"<page><title>{escape(title)}</title><ns>{namespace}</ns><id>1</id>{to}"
        "<revision><id>1</id><timestamp>2020-01-01T00:00:00Z</timestamp>"
        "<model>wikitext</model><format>text/x-wiki</format>"
        f'<text xml:space="preserve">{escape(text)}</text></revision></page>\n'
    )


def dump_xml(pages: Mapping[str, str], redirects: Mapping[str, str] | None = None) -> str:
    """A dump of pages (title to wikitext) and redirects (title to title)."""
    moved = (
        page_xml(source, f"#REDIRECT [[{target}]]", redirect=target)
        for source, target in (redirects or {}).items()
    )
    return _HEAD + "".join([*(page_xml(*page) for page in pages.items()), *moved]) + "</mediawiki>"


def write_dump(
    path: Path, pages: Mapping[str, str], redirects: Mapping[str, str] | None = None
) -> Path:
    """Write a dump, compressed where the name ends in ``.bz2``."""
    data = dump_xml(pages, redirects).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bz2.compress(data) if path.suffix == ".bz2" else data)
    return path
