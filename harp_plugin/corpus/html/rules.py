"""Rules that tell boilerplate, and elements that hold no prose, from the content of a page."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import lru_cache
from itertools import chain, islice
from typing import Protocol

from selectolax.lexbor import LexborNode

from ...text import WORD
from ..pages import Dropped
from ..urls import registrable_domain
from ..word_lists import NAMES, all_words, kind_by_word

__all__ = ["HEADINGS", "TABS", "Attributes", "HtmlRules", "Resolver", "WebRules"]

Attributes = dict[str, str | None]
"""The attributes of an element."""

HEADINGS = {f"h{level}": level for level in range(1, 7)}
TABS = "tabs"
"""The region of tabs: navigation, but for their panels."""

_BY_ELEMENT = {"nav": "navigation", "aside": "aside", "header": "header", "footer": "footer"}
_BY_ROLE = kind_by_word("roles")
_BY_NAME = {region: frozenset(names) for region, names in NAMES["names"].items()}
_ENDINGS = {"nav": "navigation", "menu": "navigation", "sidebar": "aside", "footer": "footer"}
_BOXES = frozenset(NAMES["signs"]["boxes"])
_NEGATIONS = frozenset(NAMES["signs"]["negations"])
_CONTENT_NAMES = frozenset(NAMES["signs"]["content"])
_NAME = re.compile("[a-z]+")
_SECTION = re.compile(r"\b(?:section|document|level\d|[a-z]+-level-extent)\b")
_HUMP = re.compile("(?<=[a-z])(?=[A-Z])")
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)

_NUMBER = r"\(?(?:\d{1,4}|[A-Z]|[IVXLC]{1,7})(?:[.–-]\w{1,4}){0,6}\)?"
_NUMBERED_LABEL = re.compile(
    rf"(?:(?i:{'|'.join(all_words('numbered_labels'))})s?\.? |§+ ?){_NUMBER}[.:]?"
)


class HtmlRules:
    """Rules for one kind of HTML: which elements are left out, and where links lead.

    Attributes:
        is_web: whether the title of the page is one of its headings, and blocks that consist almost
            entirely of links are boilerplate.
        keeps_tables: whether the rows of tables of data are lines of text; they are left out
            otherwise.
        cleanup: patterns and their replacements, applied to the text of each section.
    """

    is_web = False
    keeps_tables = False
    cleanup: Sequence[tuple[re.Pattern[str], str]] = ()
    omitted_elements = kind_by_word("elements")
    omitted_classes = kind_by_word("omitted_classes")

    def omitted(self, tag: str, attributes: Attributes) -> str | None:
        """Return the name of an element that is left out, for the reason "link in ..."."""
        if tag in self.omitted_elements:
            return self.omitted_elements[tag]
        if not attributes:
            return None
        reasons = self.omitted_classes
        for name in (attributes.get("class") or "").split():
            if reason := reasons.get(name) or reasons.get(f"{tag}.{name}"):
                return reason
        if attributes.get("role") == "doc-noteref" or "data-footnote-ref" in attributes:
            return "a note"
        is_hidden = "hidden" in attributes or _HIDDEN.search(attributes.get("style") or "")
        return "hidden text" if is_hidden else None

    def region(self, node: LexborNode, attributes: Attributes, *, within: bool) -> str | None:
        """Return the region of a block that is boilerplate.

        Args:
            node: the element.
            attributes: its attributes.
            within: whether it stands inside a main part, an article or a section.
        """
        return None

    def is_box(self, attributes: Attributes) -> bool:
        """Return whether a block is a box in the text, such as a note.

        The headings of a box do not start sections.
        """
        return False

    def target(self, attributes: Attributes) -> str | Dropped:
        """Return the key that an ``<a href>`` links to, or why the link is dropped."""
        raise NotImplementedError

    def drop_reason(self, anchor: str, target: str) -> str | None:
        """Return why a link is dropped if its anchor text says nothing about its target."""
        return None


class Resolver(Protocol):
    """Resolves the references of a page.

    Attributes:
        key: the key of the page.
    """

    key: str

    def resolve(self, reference: str) -> str | Dropped:
        """Return the key of the page that a reference names, or why it names none."""


@dataclass(eq=False)
class WebRules(HtmlRules):
    """Rules for web pages of any origin.

    Boilerplate is: the elements nav, aside, header and footer (the last two only outside of
    articles and main parts; an aside that is a box is content), blocks with an ARIA role of
    boilerplate, and blocks with a usual name of boilerplate (``navbar``, ``breadcrumbs``,
    ``sidebar``) as a word of their class or id, but for headers inside of articles and main parts,
    and for ids that are made of the heading of a section or of a term. A note that leads to other
    pages is a hatnote (role ``note`` or class ``hatnote``, and no box). Code blocks, form controls,
    embedded media, captions and hidden elements are left out.

    Args:
        address: the address of the page.
        by_name: whether the usual names of boilerplate count.
        is_navigation: tells by tag and attributes whether a block is navigation, such as
            an index.

    Attributes:
        used_names: whether a name has marked a block as boilerplate so far.
    """

    is_web = True
    address: Resolver
    _: KW_ONLY
    by_name: bool = True
    is_navigation: Callable[[str, Attributes], bool] | None = None
    used_names: bool = field(default=False, init=False)

    def region(self, node: LexborNode, attributes: Attributes, *, within: bool) -> str | None:
        """See `HtmlRules`."""
        tag = node.tag or "-"
        if self.is_navigation is not None and self.is_navigation(tag, attributes):
            return "navigation"
        role = (attributes.get("role") or "").strip().lower()
        region = _BY_ROLE.get(role) or (None if role == "main" else _BY_ELEMENT.get(tag))
        if role == "note" and not self.is_box(attributes):
            region = "hatnote"
        elif region == "aside" and (self.is_box(attributes) or attributes.get("class") == "topic"):
            region = None
        if region is None and self.by_name and role != "main" and tag not in ("main", "article"):
            names = attributes.get("class") or "", attributes.get("id") or ""
            region = _region_by_name(*names) if any(names) else None
            if region is not None and _is_slug(node, *names):
                region = _region_by_name(names[0])
            self.used_names = self.used_names or region is not None
            is_panel = role == "tabpanel" and region == TABS
            return None if is_panel or (within and region == "header") else region
        return None if within and region in ("header", "footer") else region

    def is_box(self, attributes: Attributes) -> bool:
        """See `HtmlRules`."""
        return bool(attributes) and not _BOXES.isdisjoint((attributes.get("class") or "").split())

    def target(self, attributes: Attributes) -> str | Dropped:
        """See `HtmlRules`."""
        return self.address.resolve(attributes.get("href") or "")

    def drop_reason(self, anchor: str, target: str) -> str | None:
        """See `HtmlRules`.

        Signs say nothing, and neither do numbered labels inside a site. On another site, a label
        such as "Section 230" may be the name of the page.
        """
        if WORD.search(anchor) is None:
            return "anchor text without a word"
        is_numbered = _NUMBERED_LABEL.fullmatch(anchor) is not None
        if is_numbered and registrable_domain(target) == registrable_domain(self.address.key):
            return "anchor text that is a number (Section 5.1)"
        return None


def _is_slug(node: LexborNode, classes: str, own_id: str) -> bool:
    """Return whether the id of an element is made of a term, or of the heading of a section."""
    if node.tag != "section" and _SECTION.search(classes) is None:
        return node.tag in ("dd", "dt")
    headings = (child for child in islice(node.iter(), 4) if child.tag in HEADINGS)
    title = next((heading.text()[:1000] for heading in headings), "")
    return _NAME.findall(title.lower()) == _NAME.findall(own_id.lower().removeprefix("s-"))


@lru_cache(maxsize=1 << 14)
def _region_by_name(*names: str) -> str | None:
    for value in names:
        for name in value[:1000].split():
            words = _NAME.findall(_HUMP.sub("-", name).lower())
            if not words or not _NEGATIONS.isdisjoint(words):
                continue
            named = (region for region, own in _BY_NAME.items() if not own.isdisjoint(words))
            ended = (region for end, region in _ENDINGS.items() if words[-1].endswith(end))
            region = next(chain(named, ended), None)
            if region in ("navigation", TABS) or (region and _CONTENT_NAMES.isdisjoint(words)):
                return region
    return None
