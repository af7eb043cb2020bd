"""Addresses of pages: they get one spelling, and relative ones are resolved."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import quote, unquote, urlsplit

import ada_url
import tldextract

from .pages import Dropped

__all__ = [
    "BROKEN",
    "INSIDE",
    "MAX_URL",
    "NO_PAGE",
    "OUTSIDE",
    "FileAddress",
    "WebAddress",
    "canonical_url",
    "registrable_domain",
]

MAX_URL = 4096
"""The length of the longest address that is resolved, in characters."""
BROKEN = Dropped("link with a broken address")
NO_PAGE = Dropped("link to no page (mailto, javascript, ...)")
INSIDE = Dropped("link inside the page")
OUTSIDE = Dropped("link out of the folder")

_UNRESERVED = re.compile("%(2D|2E|5F|7E|3[0-9]|[46][1-9A-F]|[57][0-9A])", re.IGNORECASE)
_ESCAPE = re.compile("%[0-9a-f]{2}", re.IGNORECASE)
_COMPRESSED = re.compile(r"(?<=\w)\.(?:gz|bz2|xz|zst)$")
_SITE = "http://folder.invalid"
_PARENT = "/-"
_TOP = _SITE + _PARENT * 32 + "/"
# The list of suffixes is the one inside the package: no network and no cache on disk is used.
_suffixes = tldextract.TLDExtract(
    suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True
)


def canonical_url(url: str, base: str | None = None) -> str | None:
    """Write a web address in the one spelling that names a page.

    The address is resolved and written as browsers do it (the URL standard: host in lower case and
    punycode, no default port, no dot segments), without fragment and user name. Escapes of
    letters, digits and ``-._~`` are decoded (RFC 3986, 6.2.2.2); all others are in upper case.

    Args:
        url: an absolute address, or one relative to ``base``.
        base: an absolute address.

    Returns:
        The address, or None if ``url`` is not a web address.
    """
    if len(url) > MAX_URL:
        return None
    try:
        resolved = ada_url.join_url(base, url) if base else ada_url.normalize_url(url)
    except (ValueError, UnicodeError):
        return None
    resolved = resolved.partition("#")[0]
    scheme, _, rest = resolved.partition("://")
    if scheme not in ("http", "https"):
        return None
    host, slash, path = rest.partition("/")
    resolved = f"{scheme}://{host.rpartition('@')[2]}{slash}{path.removesuffix('?')}"
    return _normalize_escapes(resolved) if "%" in resolved else resolved


def _normalize_escapes(url: str) -> str:
    decoded = _UNRESERVED.sub(lambda escape: chr(int(escape[1], 16)), url)
    return _ESCAPE.sub(lambda escape: escape[0].upper(), decoded)


def registrable_domain(url: str) -> str | None:
    """Return the domain of an address that can be registered, such as ``bbc.co.uk``.

    The whole public suffix list counts, its private part included: ``someone.github.io`` is a
    registrable domain.

    Returns:
        The registrable domain, else the host, or None where the address has no host.
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
    """The address of a web page, and the base of its relative references.

    Args:
        url: the address of the page.
        base: the ``href`` of its ``<base>`` element.

    Attributes:
        key: the canonical URL of the page.
    """

    def __init__(self, url: str, base: str | None = None) -> None:
        self.key = canonical_url(url) or url
        self.base = (canonical_url(base, self.key) if base else None) or self.key

    def resolve(self, reference: str) -> str | Dropped:
        """Return the key of the page that a reference names, or why it names none."""
        key = _resolve(reference, self.base)
        return INSIDE if key == self.key else key


class FileAddress:
    """The path of a file below a folder, and the base of its relative references.

    ``/x.html`` is a file of the folder itself, a query is ignored, and ``x/`` means
    ``x/index.html``.

    Args:
        path: the path of the file below the folder.
        base: the ``href`` of its ``<base>`` element.

    Attributes:
        key: the path without the suffix of a compressed file.
    """

    def __init__(self, path: str, base: str | None = None) -> None:
        self.key = _COMPRESSED.sub("", path)
        url = _TOP + quote(path)
        self.base = (canonical_url(base, url) if base else None) or url

    def resolve(self, reference: str) -> str | Dropped:
        """Return the key of the file that a reference names, or why it names none.

        For a page of another site, this is its canonical URL.
        """
        url = _resolve(reference, self.base)
        if isinstance(url, Dropped) or not url.startswith(_SITE + "/"):
            return url
        path = url.removeprefix(_TOP) if url.startswith(_TOP) else url[len(_SITE) + 1 :]
        if not url.startswith(_TOP) and url.startswith(_SITE + _PARENT + "/"):
            return OUTSIDE
        key = _COMPRESSED.sub("", unquote(path.partition("?")[0]))
        key = key + "index.html" if not key or key.endswith("/") else key
        return INSIDE if key == self.key else key


def _resolve(reference: str, base: str) -> str | Dropped:
    """Return the canonical URL of a reference, or why it names no page or its own page."""
    reference = reference.strip()
    if reference.startswith("#"):
        return INSIDE
    url = canonical_url(reference, base)
    if url is not None:
        return url
    scheme, colon, _ = reference[:32].partition(":")
    if colon and scheme.isalpha() and scheme.lower() not in ("http", "https"):
        return NO_PAGE
    return BROKEN
