"""HTML dumps of Wikimedia Enterprise: JSON lines, in a file or in a tar archive."""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator
from typing import Any, Self

from ...errors import HarpError, folded
from ...text import normalize_title
from ..html import ParsoidRules, read_document, read_page
from ..pages import NO_TEXT, Dropped, Item, Redirect
from ..wikitext import Site, wiki_language
from .json_lines import JsonLinesReader, Record, checked, line_records, text_field
from .source import Source, numbered_lines

__all__ = ["WikimediaEnterpriseReader"]

_TAR_MAGIC = slice(257, 262)
_VARIABLE_HEADERS = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)
_MAX_HEADER = 1 << 20
_SUFFIXES = (".ndjson", ".json", ".jsonl")


class WikimediaEnterpriseReader(JsonLinesReader):
    """Reads the articles of a Wikimedia Enterprise dump from Parsoid's HTML.

    Each article names the redirects that lead to it. The reader knows the English names of
    namespaces only: links to a namespace by a name in another language lead to missing pages.
    """

    record_name = "article of Wikimedia Enterprise"

    def recognizes(self, source: Source) -> bool:
        """Return whether the first line, in an archive or not, has the fields of an article."""
        head = source.head
        fields = (b'"article_body"', b'"is_part_of"')
        starts = _is_archive(source) or head.startswith(b"{")
        return starts and b'"identifier"' in head and any(field in head for field in fields)

    def records(self, source: Source) -> Iterator[Record | Dropped]:
        """Stream the lines.

        Raises:
            HarpError: the archive is truncated or damaged.
        """
        return _archived_lines(source) if _is_archive(source) else super().records(source)

    def items(self, record: Record) -> Iterable[Item]:
        """Give the redirects to the article, and the article from its HTML."""
        return _items(record.fields())


def _is_archive(source: Source) -> bool:
    return source.head[_TAR_MAGIC] == b"ustar"


def _archived_lines(source: Source) -> Iterator[Record | Dropped]:
    """Stream the lines of the JSON files in a tar archive."""
    place = source.name
    with source.open() as file:
        try:
            with tarfile.open(fileobj=file, mode="r|", tarinfo=_Member) as archive:
                for member in archive:
                    place = f"{source.name}, {member.name}"
                    content = archive.extractfile(member)
                    if content is not None and member.name.endswith(_SUFFIXES):
                        yield from line_records(place, numbered_lines(content))
                    elif not member.isdir():
                        yield Dropped("file in the archive that holds no JSON lines")
        except tarfile.TarError as error:
            raise HarpError(
                f"{place}: the archive is damaged ({folded(error)}): fetch it again"
            ) from error


class _Member(tarfile.TarInfo):
    """A member of an archive; a damaged header raises an error instead of ending the archive."""

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> Self:
        """Read the next header.

        Raises:
            tarfile.ReadError: the header is damaged, or the archive has no end.
        """
        try:
            return super().fromtarfile(archive)
        except tarfile.HeaderError as error:
            if type(error).__name__ == "EOFHeaderError":
                raise
            raise tarfile.ReadError(str(error)) from error

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Read a header from its block.

        Raises:
            tarfile.ReadError: the member needs unbounded memory.
        """
        member = super().frombuf(buf, encoding, errors)
        if member.type == tarfile.GNUTYPE_SPARSE:
            raise tarfile.ReadError("a sparse file")
        if member.type in _VARIABLE_HEADERS and member.size > _MAX_HEADER:
            raise tarfile.ReadError("a name or a header over 1 MiB")
        return member


def _items(fields: dict[str, Any]) -> Iterator[Item]:
    if _subfield(fields, "namespace", "identifier", 0) != 0:
        yield Dropped("page of another namespace")
        return
    wiki = str(_subfield(fields, "is_part_of", "identifier", ""))
    language = str(_subfield(fields, "in_language", "identifier", "") or "")
    site = Site(first_letter=not wiki.endswith("wiktionary"))
    title = text_field(fields, "name")
    key = normalize_title(title, first_letter=site.first_letter)
    html = checked(_subfield(fields, "article_body", "html", None) or "", str, "html")
    document = read_document(html) if html else NO_TEXT
    if isinstance(document, Dropped):
        yield document
        return
    document.language = wiki_language(language)
    for redirect in checked(fields.get("redirects") or [], list, "redirects"):
        name = text_field(checked(redirect, dict, "redirects"), "name")
        source = normalize_title(name, first_letter=site.first_letter)
        if source != key:
            yield Redirect(source, key)
    page = read_page(key, document, ParsoidRules(key, site))
    page.title = title
    yield page if page.sections else NO_TEXT


def _subfield(fields: dict[str, Any], name: str, subname: str, default: Any) -> Any:
    """Return a field of an object that is itself a field; a missing one gives the default."""
    return checked(fields.get(name) or {}, dict, name).get(subname, default)
