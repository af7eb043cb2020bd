"""Rules for the HTML of MediaWiki's Parsoid, by the names of classes and relations."""

from __future__ import annotations

import re

from ...text import normalize_title
from ..pages import Dropped
from ..urls import INSIDE
from ..wikitext import Site
from ..wikitext.cleanup import EMPTY_BRACKETS, OPENING_BRACKET
from ..word_lists import kind_by_word
from .rules import Attributes, HtmlRules

__all__ = ["ParsoidRules"]

_OMITTED_TYPES = kind_by_word("parsoid_types")
_OMITTED_ROLES = kind_by_word("parsoid_roles")
_CLEANUP = ((EMPTY_BRACKETS, ""), (OPENING_BRACKET, "("), (re.compile(r" +(?=[,.](?:\s|$))"), ""))


class ParsoidRules(HtmlRules):
    """Rules for one article: its content is the prose, with the text of inline templates.

    These are left out: references, tables, figures and media with their captions, notes such as
    "Main article: ...", and the boxes of templates (infoboxes, navigation boxes, maintenance
    notes).

    Args:
        key: the normalized title of the article.
        site: the settings of its wiki.
    """

    cleanup = _CLEANUP
    omitted_elements = HtmlRules.omitted_elements | {"figure": "a figure", "table": "a table"}
    omitted_classes = kind_by_word("parsoid_classes")

    def __init__(self, key: str, site: Site) -> None:
        self.key = key
        self.site = site

    def omitted(self, tag: str, attributes: Attributes) -> str | None:
        """See `HtmlRules`."""
        reason = super().omitted(tag, attributes)
        if reason or not attributes:
            return reason
        types = attributes.get("typeof") or ""
        reasons = (reason for kind, reason in _OMITTED_TYPES.items() if kind in types)
        return next(reasons, None) or _OMITTED_ROLES.get(attributes.get("role") or "")

    def target(self, attributes: Attributes) -> str | Dropped:
        """See `HtmlRules`; the key is the normalized title."""
        relation, reference = attributes.get("rel") or "", attributes.get("href") or ""
        if "mw:WikiLink/Interwiki" in relation:
            return Dropped("link to another wiki")
        if "mw:MediaLink" in relation:
            return Dropped("file or category")
        if not reference.startswith("./"):
            return INSIDE if reference.startswith("#") else Dropped("link to another site")
        title = reference[2:].partition("?")[0]
        target = normalize_title(title, first_letter=self.site.first_letter)
        prefix, colon, _ = target.partition(":")
        if colon and prefix.strip().lower() in self.site.namespaces:
            return Dropped("link to another namespace")
        if not target or (target == self.key and "#" in title):
            return INSIDE
        return target
