"""Pages that ACM contrasts with a page that a sentence links to."""

from __future__ import annotations

import numpy as np

from .negatives import draw_by_in_links
from .options import DrawOptions
from .passages import draw_page
from .source import Anchor, BuildSource

__all__ = ["pages_linked_with", "unrelated_page"]


def pages_linked_with(
    first: Anchor, second: Anchor, source: BuildSource, options: DrawOptions
) -> set[int]:
    """Collect the pages that must not be the negative of two anchors of one sentence.

    These are the article itself, all pages that the sentence links to, and all that the first
    anchor's text leads to anywhere; fewer where ``acm_negative_page`` is ``any_but_pair`` or
    ``any``.
    """
    if options.negatives == "task":
        if options.acm_negative_page == "any":
            return {second.page}
        if options.acm_negative_page == "any_but_pair":
            return {first.page, second.page}
    linked = source.pages_linked_by(first.sentence) | source.text_targets(first.text_id)
    return linked | {first.source}


def unrelated_page(
    rng: np.random.Generator,
    anchor: Anchor,
    excluded: set[int],
    source: BuildSource,
    options: DrawOptions,
) -> int | None:
    """Draw a page by ``acm_negative_page``.

    ``same_article`` draws one of the other pages that the anchor's article links to. Where there is
    none, it draws a page in proportion to its in-links: that a page has many tells nothing then.
    The other values draw uniformly.
    """
    if options.acm_negative_page != "same_article":
        return draw_page(rng, source.documents, excluded)
    page = draw_page(rng, source.page_links(anchor.source).targets, excluded)
    return draw_by_in_links(rng, source, excluded) if page is None else page
