"""Options of the link graph."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import HarpError
from ..option_names import flag

FILTERS = ("functional_anchors", "disambiguation_pages", "list_pages", "near_duplicate_leads")
"""Options that say whether to keep or to drop."""
_CHOICES = ("keep", "drop")


def _filter(of_what: str) -> str:
    return field(default="keep", metadata={"help": of_what, "choices": list(_CHOICES)})


@dataclass
class GraphOptions:
    """Which pages and links count.

    Raises:
        HarpError: a number is out of its range, or a choice is unknown.
    """

    min_words: int = field(
        default=100,
        metadata={"help": "Articles with fewer words are left out (the paper: 100)."},
    )
    min_lead_words: int = field(
        default=0, metadata={"help": "A page whose lead has fewer words is no document."}
    )
    title_anchors: float = field(
        default=1.0,
        metadata={"help": "Share kept of the links whose text is their page's title."},
    )
    functional_anchors: str = _filter("Links whose text is 'here', 'website', 'read more' etc.")
    disambiguation_pages: str = _filter("Disambiguation pages, as sources and as documents.")
    list_pages: str = _filter("Lists and set indices, as sources and as documents.")
    near_duplicate_leads: str = _filter("Documents whose lead nearly repeats another's.")

    def __post_init__(self) -> None:
        for name in ("min_words", "min_lead_words"):
            if getattr(self, name) < 0:
                raise HarpError(f"{flag(name)} {getattr(self, name)}: give 0 or more")
        if not 0 <= self.title_anchors <= 1:
            raise HarpError(f"--title-anchors {self.title_anchors}: give a share from 0 to 1")
        for name in FILTERS:
            if getattr(self, name) not in _CHOICES:
                raise HarpError(f"{flag(name)} {getattr(self, name)}: give one of keep, drop")
