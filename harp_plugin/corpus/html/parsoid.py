"""Rules for the HTML of MediaWiki's Parsoid, by the names of its classes and relations."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...text import normalise_title
from ..pages import Dropped
from ..urls import INSIDE
from ..wikitext import Site
from .rules import OMITTED_ELEMENTS, Attributes

_OMITTED_ELEMENTS = OMITTED_ELEMENTS | {"figure": "a figure", "table": "a table"}
_REFERENCE, _FIGURE, _BOX = "a reference", "a figure", "a box of a template"
_OMITTED_CLASSES = {
    **dict.fromkeys(
        {"citation", "mw-cite-backlink", "mw-ref", "mw-references", "mw-references-wrap"}
        | {"noprint", "reference", "references", "reflist", "refbegin", "Z3988"},
        _REFERENCE,
    ),
    **dict.fromkeys(["gallery", "mw-default-size", "mw-file-element", "thumb", "tmulti"], _FIGURE),
    **dict.fromkeys(
        {"ambox", "asbox", "authority-control", "catlinks", "coordinates", "dablink", "dmbox"}
        | {"hatnote", "infobox", "mbox-small", "metadata", "mw-editsection", "navbox"}
        | {"navigation-not-searchable", "noexcerpt", "portal-bar", "portalbox", "rellink"}
        | {"shortdescription", "side-box", "sidebar", "sistersitebox", "succession-box", "toc"}
        | {"vertical-navbox"},
        _BOX,
    ),
}
_OMITTED_TYPES = (
    ("mw:Extension/ref", _REFERENCE),
    ("mw:File", _FIGURE),
    ("mw:Image", _FIGURE),
    ("mw:Video", _FIGURE),
    ("mw:Audio", _FIGURE),
    ("mw:Extension/gallery", _FIGURE),
)
_CLEANUP = (
    (re.compile(r" ?\([\s,;:]*\)"), ""),
    (re.compile(r"\([\s,;:]+"), "("),
    (re.compile(r" +(?=[,.](?:\s|$))"), ""),
)
_ROLES = {"note": _BOX, "navigation": _BOX}


class ParsoidRules:
    """Rules for one article: prose is kept, with what inline templates write.

    Left out are references, tables, figures and media with their captions, notes such as "Main
    article: ...", and the boxes of templates (infoboxes, navigation boxes, maintenance notes).

    Args:
        key: the article's normalised title.
        site: the namespaces and the case of titles of its wiki.
    """

    is_web = False
    cleanup: Sequence[tuple[re.Pattern[str], str]] = _CLEANUP

    def __init__(self, key: str, site: Site) -> None:
        self.key = key
        self.site = site

    def omitted(self, tag: str, attributes: Attributes) -> str | None:
        """See `Rules`."""
        if tag in _OMITTED_ELEMENTS:
            return _OMITTED_ELEMENTS[tag]
        if not attributes:
            return None
        for name in (attributes.get("class") or "").split():
            if name in _OMITTED_CLASSES:
                return _OMITTED_CLASSES[name]
        written = attributes.get("typeof") or ""
        for kind, what in _OMITTED_TYPES:
            if kind in written:
                return what
        if "display:none" in (attributes.get("style") or "").replace(" ", ""):
            return "hidden text"
        return _ROLES.get(attributes.get("role") or "")

    def region(self, tag: str, attributes: Attributes, *, within: bool) -> str | None:
        """None: an article's HTML holds no page around it."""
        return None

    def is_box(self, attributes: Attributes) -> bool:
        """False: boxes are left out."""
        return False

    def says_nothing(self, anchor: str, target: str) -> str | None:
        """None: articles are linked by their names, which may be signs."""
        return None

    def target(self, attributes: Attributes) -> str | Dropped:
        """See `Rules`: the normalised title."""
        relation, reference = attributes.get("rel") or "", attributes.get("href") or ""
        if "mw:WikiLink/Interwiki" in relation:
            return Dropped("link to another wiki")
        if "mw:MediaLink" in relation:
            return Dropped("file or category")
        if not reference.startswith("./"):
            return INSIDE if reference.startswith("#") else Dropped("link to another site")
        written = reference[2:].partition("?")[0]
        target = normalise_title(written, first_letter=self.site.first_letter)
        prefix, colon, _ = target.partition(":")
        if colon and prefix.strip().lower() in self.site.namespaces:
            return Dropped("link to another namespace")
        if not target or (target == self.key and "#" in written):
            return INSIDE
        return target
