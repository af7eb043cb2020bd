"""HTML dumps of Wikimedia Enterprise: JSON lines, alone or in a tar archive."""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Iterator
from typing import IO, Any, Self

from ...errors import HarpError
from ...text import normalise_title
from ..html import read_document, read_page
from ..html.parsoid import ParsoidRules
from ..pages import Dropped, Item, Redirect
from ..wikitext import Site
from .base import READERS
from .json_lines import Line, json_object, text_field, typed, well_formed
from .source import Source, numbered_lines

_TAR_MAGIC = slice(257, 262)
_UNBOUNDED = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)
_MOST_HEADER = 1 << 20
_SUFFIXES = (".ndjson", ".json", ".jsonl")


@READERS.register("wikimedia-enterprise")
class WikimediaEnterpriseReader:
    """Reads the articles of a Wikimedia Enterprise dump from Parsoid's HTML.

    Each article brings the redirects that lead to it. Its namespaces are known by their English
    names only: links to those named in another language dangle.
    """

    def recognises(self, source: Source) -> bool:
        """Whether the first line, in an archive or not, has the fields of an article."""
        head = source.head
        fields = (b'"article_body"', b'"is_part_of"')
        starts = head[_TAR_MAGIC] == b"ustar" or head.startswith(b"{")
        return starts and b'"identifier"' in head and any(field in head for field in fields)

    def records(self, source: Source) -> Iterator[Line | Dropped]:
        """Stream the lines.

        Raises:
            HarpError: the archive is truncated or damaged.
        """
        if source.head[_TAR_MAGIC] != b"ustar":
            with source.open() as file:
                yield from _lines(source.name, file)
            return
        place = source.name
        with source.open() as file:
            try:
                with tarfile.open(fileobj=file, mode="r|", tarinfo=_Member) as archive:
                    for member in archive:
                        place = f"{source.name}, {member.name}"
                        inner = archive.extractfile(member)
                        if inner is not None and member.name.endswith(_SUFFIXES):
                            yield from _lines(place, inner)
                        elif not member.isdir():
                            yield Dropped("file in the archive that holds no JSON lines")
            except tarfile.TarError as error:
                what = " ".join(str(error).split())
                raise HarpError(f"{place}: the archive is damaged ({what}): fetch it again") from (
                    error
                )

    def parse(self, record: Line) -> Iterable[Item]:
        """Parse the article's HTML.

        Raises:
            HarpError: the record is no article.
        """
        with well_formed(record.place, "article of Wikimedia Enterprise"):
            yield from _items(json_object(record.data))


class _Member(tarfile.TarInfo):
    """A member, of which damage is told: elsewhere, a damaged header ends an archive."""

    @classmethod
    def fromtarfile(cls, archive: tarfile.TarFile) -> Self:
        """Read the next header.

        Raises:
            tarfile.ReadError: it is damaged, or the archive has no end.
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
            tarfile.ReadError: it needs unbounded memory.
        """
        member = super().frombuf(buf, encoding, errors)
        if member.type == tarfile.GNUTYPE_SPARSE:
            raise tarfile.ReadError("a sparse file")
        if member.type in _UNBOUNDED and member.size > _MOST_HEADER:
            raise tarfile.ReadError("a name or a header over 1 MiB")
        return member


def _lines(name: str, file: IO[bytes]) -> Iterator[Line | Dropped]:
    for line in numbered_lines(file):
        yield line if isinstance(line, Dropped) else Line(name, *line)


def _items(fields: dict[str, Any]) -> Iterator[Item]:
    if _part(fields, "namespace", "identifier", 0) != 0:
        yield Dropped("page of another namespace")
        return
    wiki = str(_part(fields, "is_part_of", "identifier", ""))
    language = str(_part(fields, "in_language", "identifier", "") or "en")
    site = Site(first_letter=not wiki.endswith("wiktionary"))
    title = text_field(fields, "name")
    key = normalise_title(title, first_letter=site.first_letter)
    html = typed(_part(fields, "article_body", "html", None) or "", str, "html")
    document = read_document(html) if html else Dropped("page without text")
    if isinstance(document, Dropped):
        yield document
        return
    document.language = {"simple": "en"}.get(language, language)
    for redirect in typed(fields.get("redirects") or [], list, "redirects"):
        written = text_field(typed(redirect, dict, "redirects"), "name")
        source = normalise_title(written, first_letter=site.first_letter)
        if source != key:
            yield Redirect(source, key)
    page = read_page(key, document, ParsoidRules(key, site))
    page.title = title
    yield page if page.sections else Dropped("page without text")


def _part(fields: dict[str, Any], name: str, part: str, default: Any) -> Any:
    """A field of a field, where both are there."""
    inner = typed(fields.get(name) or {}, dict, name)
    return inner.get(part, default)
