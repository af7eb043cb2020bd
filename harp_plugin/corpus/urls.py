"""Addresses of pages: one spelling for each, relative ones resolved, registrable domains."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import quote, unquote, urlsplit

import ada_url
import tldextract

from .pages import Dropped

MAX_URL = 4096
"""Characters of the longest address that is resolved."""
BROKEN = Dropped("link with a broken address")
NO_PAGE = Dropped("link to no page (mailto, javascript, ...)")
INSIDE = Dropped("link inside the page")
OUTSIDE = Dropped("link out of the folder")

_UNRESERVED = re.compile("%(2D|2E|5F|7E|3[0-9]|[46][1-9A-F]|[57][0-9A])", re.IGNORECASE)
_ESCAPE = re.compile("%[0-9a-f]{2}", re.IGNORECASE)
_COMPRESSED = re.compile(r"(?<=\w)\.(?:gz|bz2|xz|zst|7z)$")
_FOLDER = "http://folder.invalid"
_ABOVE = "/-"
_TOP = _FOLDER + _ABOVE * 32 + "/"
# The list of suffixes that comes with the package: no network, no cache on disk.
_suffixes = tldextract.TLDExtract(
    suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True
)


def canonical_url(url: str, base: str | None = None) -> str | None:
    """The one spelling of a web address, by which a page is known; None if it is none.

    Resolved and written as browsers do (the URL standard: host in lower case and punycode, no
    default port, no dot segments), without fragment and user name, with letters, digits and
    ``-._~`` unescaped (RFC 3986, 6.2.2.2) and other escapes in upper case.

    Args:
        url: absolute, or relative to ``base``.
        base: an absolute address.
    """
    if len(url) > MAX_URL:
        return None
    try:
        found = ada_url.join_url(base, url) if base else ada_url.normalize_url(url)
    except (ValueError, UnicodeError):
        return None
    found = found.partition("#")[0]
    scheme, _, rest = found.partition("://")
    if scheme not in ("http", "https"):
        return None
    host, slash, path = rest.partition("/")
    found = f"{scheme}://{host.rpartition('@')[2]}{slash}{path.removesuffix('?')}"
    return _escapes(found) if "%" in found else found


def _escapes(url: str) -> str:
    plain = _UNRESERVED.sub(lambda escape: chr(int(escape[1], 16)), url)
    return _ESCAPE.sub(lambda escape: escape[0].upper(), plain)


def registrable_domain(url: str) -> str | None:
    """The domain that can be registered (``bbc.co.uk``), else the host; None without a host.

    By the public suffix list, its private part included: ``someone.github.io`` is one, too.
    """
    return _registrable_domain(url) if len(url) <= MAX_URL else None


@lru_cache(maxsize=1 << 14)
def _registrable_domain(url: str) -> str | None:
    try:
        host = urlsplit(url).hostname
    except ValueError:
        return None
    return (_suffixes.extract_str(host).top_domain_under_public_suffix or host) if host else None


class WebAddress:
    """The address of a page of the web, and what is written relative to it."""

    def __init__(self, url: str, base: str | None = None) -> None:
        self.key = canonical_url(url) or url
        self.base = (canonical_url(base, self.key) if base else None) or self.key

    def resolve(self, reference: str) -> str | Dropped:
        """The key of the page that a link refers to, or why it names none."""
        reference = reference.strip()
        if reference.startswith("#"):
            return INSIDE
        found = canonical_url(reference, self.base)
        if found is None:
            return _without_page(reference)
        return INSIDE if found == self.key else found


class FileAddress:
    """The path of a file below a folder, and what is written relative to it.

    Keys are such paths, without the endings of compressed files. ``/x.html`` is looked for in the
    folder itself; a query is left out; ``x/`` is ``x/index.html``.
    """

    def __init__(self, path: str, base: str | None = None) -> None:
        self.key = _COMPRESSED.sub("", path)
        here = _TOP + quote(path)
        self.base = (canonical_url(base, here) if base else None) or here

    def resolve(self, reference: str) -> str | Dropped:
        """The key of the file, the canonical URL of a page elsewhere, or why it names none."""
        reference = reference.strip()
        if reference.startswith("#"):
            return INSIDE
        found = canonical_url(reference, self.base)
        if found is None:
            return _without_page(reference)
        if not found.startswith(_FOLDER + "/"):
            return found
        path = found.removeprefix(_TOP) if found.startswith(_TOP) else found[len(_FOLDER) + 1 :]
        if not found.startswith(_TOP) and found.startswith(_FOLDER + _ABOVE + "/"):
            return OUTSIDE
        key = _COMPRESSED.sub("", unquote(path.partition("?")[0]))
        key = key + "index.html" if not key or key.endswith("/") else key
        return INSIDE if key == self.key else key


def _without_page(reference: str) -> Dropped:
    scheme, colon, _ = reference[:32].partition(":")
    if colon and scheme.isalpha() and scheme.lower() not in ("http", "https"):
        return NO_PAGE
    return BROKEN
