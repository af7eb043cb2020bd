"""Options of the graph stage."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from ..options import Fraction, Interval, Number, Options, Seed, option

__all__ = ["FILTERS", "GraphOptions", "KeepOrDrop"]

FILTERS = (
    "functional_anchors",
    "same_site_links",
    "disambiguation_pages",
    "list_pages",
    "near_duplicate_leads",
)
"""Options with the choices keep and drop."""
KeepOrDrop = Literal["keep", "drop"]
_HELD_OUT = ("held_out_links", "held_out_by", "seed")


@dataclass(kw_only=True)
class GraphOptions(Options):
    """Which pages and links count."""

    min_words: Number = option(100, "Pages with fewer words are left out (the paper: 100).")
    min_lead_words: Number = option(
        0, "Pages whose lead has fewer words are not used as documents."
    )
    title_anchors: Fraction = option(
        1.0, "Fraction of the links to keep whose text is the title of their page."
    )
    functional_anchors: KeepOrDrop = option(
        "keep", "Keep or drop links whose text is 'here', 'website' or the like."
    )
    same_site_links: KeepOrDrop = option(
        "keep", "Keep or drop links between two pages of one site, by their registrable domain."
    )
    disambiguation_pages: KeepOrDrop = option(
        "keep", "Keep or drop disambiguation pages, as sources and as documents."
    )
    list_pages: KeepOrDrop = option(
        "keep", "Keep or drop lists and set indices, as sources and as documents."
    )
    near_duplicate_leads: KeepOrDrop = option(
        "keep", "Keep or drop documents whose lead nearly repeats another lead."
    )
    held_out_links: Annotated[float, Interval(ge=0, lt=1)] = option(
        0.0,
        "Fraction of the pages, or of the anchor texts, whose links no task sees: `harp collect` "
        "makes queries of them.",
    )
    held_out_by: Literal["page", "text"] = option(
        "page", "Hold out all links to a page, or all links of an anchor text."
    )
    seed: Seed = option(42, "Seed of the choice of held-out links.")

    @property
    def deciding(self) -> dict[str, Any]:
        """The options that decide the tables: those of held-out links only where links are."""
        without_effect = () if self.held_out_links else _HELD_OUT
        return {name: value for name, value in asdict(self).items() if name not in without_effect}
