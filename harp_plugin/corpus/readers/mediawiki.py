"""MediaWiki XML dumps: ``pages-articles.xml`` of any wiki."""

from __future__ import annotations

import re
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from lzma import LZMAError
from typing import IO, NamedTuple
from xml.etree.ElementTree import ParseError

import mwxml
from mwxml.errors import MalformedXML

from ...errors import HarpError
from ...text import normalise_title
from ..pages import Dropped, Item, Redirect
from ..wikitext import CANONICAL_NAMESPACES, UNSEEN_NAMESPACES, Site, parse_page
from .base import READERS

_HIDDEN_IDS = (-2, 6, 14)
_WIKITEXT = (None, "wikitext")
_REDIRECT = re.compile(r"\s*#redirect\s*:?\s*\[\[([^\[\]|\n]+)", re.IGNORECASE)


class _RawPage(NamedTuple):
    title: str
    text: str
    site: Site


@READERS.register("mediawiki")
class MediaWikiReader:
    """Reads MediaWiki XML exports by mwxml and wikitext by mwparserfromhell."""

    def recognises(self, head: bytes) -> bool:
        """Whether the XML's root is ``<mediawiki>``."""
        return b"<mediawiki" in head[:4096]

    def records(self, file: IO[bytes], name: str) -> Iterator[_RawPage | Redirect | Dropped]:
        """Stream pages, newest revision each, redirects, and what is dropped.

        Raises:
            HarpError: the dump is truncated, is no XML, or has broken UTF-8.
        """
        try:
            dump = mwxml.Dump.from_file(file)
            site = site_of(dump.site_info)
            for page in dump:
                yield self._record(page, site)
        except ParseError as error:
            what = " ".join(str(error).split())
            raise HarpError(
                f"{name} is no whole MediaWiki dump ({what}): fetch it again"
            ) from error
        except EOFError as error:
            raise HarpError(f"{name} is truncated ({error}): fetch it again") from error
        except (MalformedXML, AssertionError, ValueError) as error:
            what = " ".join(str(error).split())
            raise HarpError(f"{name} is no MediaWiki dump ({what}): name another source") from error
        except (OSError, zlib.error, LZMAError) as error:
            raise HarpError(f"{name} cannot be read ({error}): fetch it again") from error

    def parse(self, record: _RawPage | Redirect | Dropped) -> Iterable[Item]:
        """Parse one page's wikitext."""
        if isinstance(record, _RawPage):
            yield parse_page(record.title, record.text, record.site)
        else:
            yield record

    def _record(self, page: mwxml.Page, site: Site) -> _RawPage | Redirect | Dropped:
        revisions = deque(page, maxlen=1)
        if page.namespace != 0:
            return Dropped("page of another namespace")
        last = revisions.pop() if revisions else None
        if target := page.redirect or _redirect(last):
            first_letter = site.first_letter
            return Redirect(
                normalise_title(page.title, first_letter=first_letter),
                normalise_title(target, first_letter=first_letter),
            )
        if last is None or not last.text:
            return Dropped("page without text")
        if last.model not in _WIKITEXT:
            return Dropped("page that is not wikitext")
        return _RawPage(page.title, last.text, site)


def _redirect(revision: mwxml.Revision | None) -> str | None:
    """Target of a redirect in a dump of before 2011, whose ``<redirect>`` does not name it."""
    found = _REDIRECT.match(revision.text or "") if revision else None
    return found[1] if found else None


def site_of(info: mwxml.SiteInfo) -> Site:
    """Read namespaces, title case and language from a dump's ``<siteinfo>``."""
    listed = [space for space in info.namespaces or [] if space.name]
    language = (info.dbname or "").partition("wik")[0].replace("_", "-")
    return Site(
        namespaces=CANONICAL_NAMESPACES | {space.name.lower() for space in listed if space.id},
        hidden=UNSEEN_NAMESPACES
        | {space.name.lower() for space in listed if space.id in _HIDDEN_IDS},
        first_letter=info.case != "case-sensitive",
        language={"simple": "en", "": "en"}.get(language, language),
    )
