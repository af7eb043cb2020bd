"""Two pages that one anchor text leads to, and an anchor that leads to one of them."""

from __future__ import annotations

import numpy as np

from .options import DrawOptions
from .source import Anchor, BuildSource

__all__ = ["draw_other_page", "draw_senses"]

_TRIES = 10


def draw_senses(
    rng: np.random.Generator, anchor: Anchor, source: BuildSource, options: DrawOptions
) -> tuple[Anchor | None, int | None]:
    """Draw an ordered pair of pages of an anchor's text, then an anchor that leads to the first.

    All ordered pairs are equally likely, so that each page is the positive as often as the
    negative, however many anchors lead to it. No pair is drawn of pages that are alike, or without
    an anchor whose words have weights and whose sentence does not link to the second page.

    Returns:
        An anchor and the second page, or twice None where ten draws find none. Unless
        ``qdm_negatives`` is ``pair_first``, the anchor itself and None.
    """
    if options.qdm_negatives != "pair_first":
        return anchor, None
    text = source.ambiguous_text(anchor.text_id)
    for _ in range(_TRIES):
        first, second = map(int, rng.choice(text.pages, size=2, replace=False))
        if source.are_alike(first, second, options):
            continue
        for id in rng.permutation(text.anchors[text.anchor_pages == first]).tolist():
            anchor = source.anchor(id)
            if source.has_weights(id) and second not in source.pages_linked_by(anchor.sentence):
                return anchor, second
    return None, None


def draw_other_page(
    rng: np.random.Generator, anchor: Anchor, source: BuildSource, options: DrawOptions
) -> int | None:
    """Draw another page of an anchor's text, as often as the text leads to it.

    Where ``qdm_negatives`` is ``first_ten``, only the first ten anchors of the text count.
    """
    text = source.ambiguous_text(anchor.text_id)
    pages, counts = text.pages, text.counts
    if options.qdm_negatives == "first_ten":
        first = text.anchor_pages[np.argsort(text.anchors)[:10]]
        pages, counts = np.unique(first, return_counts=True)
    other = pages != anchor.page
    if not other.any():
        return None
    return int(rng.choice(pages[other], p=counts[other] / counts[other].sum()))
