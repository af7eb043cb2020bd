"""Options of the graph stage."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from ..options import Fraction, Interval, Number, Options, Seed

__all__ = ["GraphOptions", "KeepOrDrop"]

KeepOrDrop = Literal["keep", "drop"]
_HELD_OUT = ("held_out_links", "held_out_by", "seed")


@dataclass(kw_only=True)
class GraphOptions(Options):
    """Which pages and links count.

    Attributes:
        min_words: Pages with fewer words are left out (the paper: 100).
        min_lead_words: Pages whose lead has fewer words are not used as documents.
        title_anchors: Fraction of the links to keep whose text is the title of their page.
        functional_anchors: Keep or drop links whose text is 'here', 'website' or the like.
        numeric_anchors: Keep or drop links whose text has no letter, such as '1984'.
        long_anchors: Keep or drop links whose text has more than 64 words.
        same_site_links: Keep or drop links between two pages of one site, by their registrable
            domain.
        disambiguation_pages: Keep or drop disambiguation pages, as sources and as documents.
        list_pages: Keep or drop lists and set indices, as sources and as documents.
        near_duplicate_leads: Keep or drop documents whose lead nearly repeats another lead.
        held_out_links: Fraction of the pages, or of the anchor texts, whose links no task sees:
            `harp collect` makes queries of them.
        held_out_by: Hold out all links to a page, or all links of an anchor text.
        seed: Seed of the choice of held-out links.
    """

    min_words: Number = 100
    min_lead_words: Number = 0
    title_anchors: Fraction = 1.0
    functional_anchors: KeepOrDrop = "keep"
    numeric_anchors: KeepOrDrop = "keep"
    long_anchors: KeepOrDrop = "keep"
    same_site_links: KeepOrDrop = "keep"
    disambiguation_pages: KeepOrDrop = "keep"
    list_pages: KeepOrDrop = "keep"
    near_duplicate_leads: KeepOrDrop = "keep"
    held_out_links: Annotated[float, Interval(ge=0, lt=1)] = 0.0
    held_out_by: Literal["page", "text"] = "page"
    seed: Seed = 42

    @property
    def deciding(self) -> dict[str, Any]:
        """The options that decide the tables: those of held-out links only where links are."""
        without_effect = () if self.held_out_links else _HELD_OUT
        return {name: value for name, value in asdict(self).items() if name not in without_effect}
