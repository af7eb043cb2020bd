"""Options of the graph stage."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from ..errors import HarpError
from ..option_names import flag

__all__ = ["FILTERS", "HELD_OUT_BY", "GraphOptions"]

FILTERS = (
    "functional_anchors",
    "same_site_links",
    "disambiguation_pages",
    "list_pages",
    "near_duplicate_leads",
)
"""Options with the choices keep and drop."""
_CHOICES = ("keep", "drop")
HELD_OUT_BY = ("page", "text")
"""What decides whether a link is held out: the page that it leads to, or its text."""
_HELD_OUT = ("held_out_links", "held_out_by", "seed")


def _filter(subject: str) -> str:
    help_text = f"Whether to keep or drop {subject}."
    return field(default="keep", metadata={"help": help_text, "choices": list(_CHOICES)})


@dataclass
class GraphOptions:
    """Which pages and links count.

    Raises:
        HarpError: a number is out of its range, or a choice is unknown.
    """

    min_words: int = field(
        default=100,
        metadata={"help": "Pages with fewer words are left out (the paper: 100)."},
    )
    min_lead_words: int = field(
        default=0, metadata={"help": "Pages whose lead has fewer words are not used as documents."}
    )
    title_anchors: float = field(
        default=1.0,
        metadata={"help": "Share of the links to keep whose text is the title of their page."},
    )
    functional_anchors: str = _filter("links whose text is 'here', 'website' or the like")
    same_site_links: str = _filter(
        "links between two pages of one site, by their registrable domain"
    )
    disambiguation_pages: str = _filter("disambiguation pages, as sources and as documents")
    list_pages: str = _filter("lists and set indices, as sources and as documents")
    near_duplicate_leads: str = _filter("documents whose lead nearly repeats another lead")
    held_out_links: float = field(
        default=0.0,
        metadata={
            "help": "Share of the pages, or of the anchor texts, whose links no task sees: "
            "`harp collect` makes queries of them."
        },
    )
    held_out_by: str = field(
        default="page",
        metadata={
            "help": "Whether all links to a page are held out, or all links of an anchor text.",
            "choices": list(HELD_OUT_BY),
        },
    )
    seed: int = field(default=42, metadata={"help": "Seed of the choice of held-out links."})

    def __post_init__(self) -> None:
        for name in ("min_words", "min_lead_words"):
            if getattr(self, name) < 0:
                raise HarpError(f"{flag(name)} {getattr(self, name)}: give 0 or more")
        if not 0 <= self.title_anchors <= 1:
            raise HarpError(f"--title-anchors {self.title_anchors}: give a share from 0 to 1")
        for name in FILTERS:
            if getattr(self, name) not in _CHOICES:
                raise HarpError(f"{flag(name)} {getattr(self, name)}: give one of keep, drop")
        if not 0 <= self.held_out_links < 1:
            raise HarpError(
                f"--held-out-links {self.held_out_links}: give a share from 0 to less than 1"
            )
        if self.held_out_by not in HELD_OUT_BY:
            raise HarpError(f"--held-out-by {self.held_out_by}: give one of page, text")

    @property
    def deciding(self) -> dict[str, Any]:
        """The options that decide the tables: some only where they are not at their default."""
        without_effect = set() if self.held_out_links else {*_HELD_OUT}
        without_effect |= {"same_site_links"} if self.same_site_links == "keep" else set()
        return {n: v for n, v in asdict(self).items() if n not in without_effect}
