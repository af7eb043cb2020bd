"""What of a page is boilerplate, and what is no prose: by elements, ARIA roles and usual names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

from ..pages import Dropped
from ..urls import registrable_domain
from .anchors import NUMBERED, WORDLESS, is_numbered, is_wordless

Attributes = dict[str, str | None]

_BY_ELEMENT = {"nav": "navigation", "aside": "aside", "header": "header", "footer": "footer"}
_BY_ROLE = {
    "banner": "header",
    "complementary": "aside",
    "contentinfo": "footer",
    "directory": "navigation",
    "doc-toc": "navigation",
    "menu": "navigation",
    "menubar": "navigation",
    "navigation": "navigation",
    "search": "navigation",
    "tablist": "navigation",
    "toolbar": "navigation",
}
_BY_NAME = {
    "header": frozenset(["banner", "header", "masthead", "topbar"]),
    "footer": frozenset(["bottombar", "colophon", "copyright", "footer", "footers"]),
    "aside": frozenset(
        {"ad", "ads", "advert", "advertisement", "adverts", "cookie", "cookies", "newsletter"}
        | {"popup", "promo", "related", "share", "sharing", "sidebar", "social", "sponsor"}
        | {"sponsored", "widget"}
    ),
    "navigation": frozenset(
        {"breadcrumb", "breadcrumbs", "menu", "menubar", "menus", "nav", "navbar", "navfooter"}
        | {"navheader", "navigation", "navlinks", "pager", "pagination", "paging", "quicklinks"}
        | {"sitemap", "skiplink", "skiplinks", "submenu", "tabs", "tableofcontents", "toc"}
        | {"toolbar"}
    ),
}
_ENDINGS = {"nav": "navigation", "menu": "navigation", "sidebar": "aside", "footer": "footer"}
_BOXES = frozenset(
    {"admonition", "alert", "callout", "caution", "danger", "hint", "important", "infobox"}
    | {"note", "notice", "tip", "warning"}
)
_WITHOUT = frozenset({"has", "no", "with", "without"})
_OF_CONTENT = frozenset(
    {"article", "card", "chapter", "content", "entry", "main", "page", "post", "section", "story"}
    | {"table", "title"}
)
_NAME = re.compile("[a-z]+")
_HUMP = re.compile("(?<=[a-z])(?=[A-Z])")
_UNSEEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)

_CODE, _CONTROL, _EMBEDDED = "code", "a form", "what is embedded"
OMITTED_ELEMENTS = {
    **dict.fromkeys(("pre", "listing", "plaintext", "xmp"), _CODE),
    **dict.fromkeys(("button", "datalist", "optgroup", "option", "select", "textarea"), _CONTROL),
    **dict.fromkeys(
        {"applet", "audio", "canvas", "embed", "frameset", "iframe", "map", "math"}
        | {"noframes", "object", "script", "style", "svg", "template", "title", "video"},
        _EMBEDDED,
    ),
    **dict.fromkeys(("caption", "figcaption"), "a caption"),
    "noscript": "text for browsers without scripts",
    "dialog": "hidden text",
}


class Rules(Protocol):
    """What a kind of HTML leaves out, marks, and links to.

    Attributes:
        is_web: whether the page's title is among its headings, and blocks of little but links are
            boilerplate.
        cleanup: patterns, and what replaces each, that tidy the text in the end.
    """

    is_web: bool
    cleanup: Sequence[tuple[re.Pattern[str], str]]

    def omitted(self, tag: str, attributes: Attributes) -> str | None:
        """What an element is, if it is left out: it completes the reason "link in ..."."""

    def region(self, tag: str, attributes: Attributes, *, within: bool) -> str | None:
        """The region of a block, if it is boilerplate; ``within``: in a main part or article."""

    def is_box(self, attributes: Attributes) -> bool:
        """Whether a block is a box in the text, such as a note: its headings head no sections."""

    def target(self, attributes: Attributes) -> str | Dropped:
        """The key that an ``<a href>`` links to, or why the link is dropped."""

    def says_nothing(self, anchor: str, target: str) -> str | None:
        """Why an anchor text says nothing of its target, if so: a reason for dropping the link."""


class Resolver(Protocol):
    """Knows the address of a page.

    Attributes:
        key: that by which the page is known.
    """

    key: str

    def resolve(self, reference: str) -> str | Dropped:
        """The key of the page that a reference names, or why it names none."""


class WebRules:
    """Rules for pages of any origin.

    Boilerplate are the elements nav, aside, header and footer (the latter two outside of articles
    and main parts), blocks of an ARIA role that says so, and blocks that carry a usual name
    (``navbar``, ``breadcrumbs``, ``sidebar``) as one of the words of their class or id. Left out
    are code blocks, form controls, embedded media, captions, and what is hidden.

    Args:
        address: resolves references.
        by_name: whether names count.

    Attributes:
        named: whether a block has been told by its name.
    """

    is_web = True
    cleanup: Sequence[tuple[re.Pattern[str], str]] = ()

    def __init__(self, address: Resolver, *, by_name: bool = True) -> None:
        self.address = address
        self.by_name = by_name
        self.named = False

    def omitted(self, tag: str, attributes: Attributes) -> str | None:
        """See `Rules`."""
        if tag in OMITTED_ELEMENTS:
            return OMITTED_ELEMENTS[tag]
        if attributes and (
            "hidden" in attributes or _UNSEEN.search(attributes.get("style") or "") is not None
        ):
            return "hidden text"
        return None

    def region(self, tag: str, attributes: Attributes, *, within: bool) -> str | None:
        """See `Rules`."""
        role = (attributes.get("role") or "").strip().lower()
        found = _BY_ROLE.get(role) or (None if role == "main" else _BY_ELEMENT.get(tag))
        if found is None and self.by_name and role != "main" and tag not in ("main", "article"):
            names = attributes.get("class"), attributes.get("id")
            found = _region_by_name(*names) if any(names) else None
            self.named = self.named or found is not None
        return None if within and found in ("header", "footer") else found

    def is_box(self, attributes: Attributes) -> bool:
        """See `Rules`."""
        return bool(attributes) and not _BOXES.isdisjoint((attributes.get("class") or "").split())

    def target(self, attributes: Attributes) -> str | Dropped:
        """See `Rules`."""
        return self.address.resolve(attributes.get("href") or "")

    def says_nothing(self, anchor: str, target: str) -> str | None:
        """See `Rules`: signs; and numbers, but "Section 230" on another site may be a name."""
        if is_wordless(anchor):
            return WORDLESS
        if is_numbered(anchor) and _same_site(target, self.address.key):
            return NUMBERED
        return None


def _same_site(one: str, other: str) -> bool:
    return registrable_domain(one) == registrable_domain(other)


@lru_cache(maxsize=1 << 14)
def _region_by_name(*names: str | None) -> str | None:
    for written in names:
        for name in (written or "")[:1000].split():
            words = _NAME.findall(_HUMP.sub("-", name).lower())
            if not words or not _WITHOUT.isdisjoint(words):
                continue
            found = _region_of(words)
            if found == "navigation" or (found and _OF_CONTENT.isdisjoint(words)):
                return found
    return None


def _region_of(words: list[str]) -> str | None:
    for region, known in _BY_NAME.items():
        if not known.isdisjoint(words):
            return region
    endings = (region for ending, region in _ENDINGS.items() if words[-1].endswith(ending))
    return next(endings, None)
