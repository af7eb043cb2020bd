"""Which anchors a group is made of: the heavier of a sentence (RDP), senses of a text (QDM)."""

from __future__ import annotations

import numpy as np

from .options import DrawOptions
from .source import Anchor, BuildSource
from .terms import distribution

__all__ = ["anchor_importance", "draw_other_page", "draw_senses", "draw_two"]

_TRIES_OF_PAIRS = 20
_TRIES_OF_SENSES = 10


def anchor_importance(
    sentence: int, source: BuildSource, options: DrawOptions
) -> tuple[list[Anchor], np.ndarray, np.ndarray]:
    """Weigh the anchors of a sentence, seen from [CLS] (HARP, section 3.2.3, eq. 10 and 11's η).

    An anchor's weight is the sum over the words in its span; anchors of equal text are one, with
    their weights added up. The layer before the last is read where ``rdp_agreement`` needs it.

    Returns:
        The anchors; their weights by the last layer, float64 of shape (anchors,); and those by the
        layer before, NaN where it is not asked for, or where the encoder has no such layer.

    Raises:
        HarpError: it is needed, but the build is older and lacks it.
    """
    weighed = source.weighed_sentence(sentence)
    starts, ends = weighed.spans.T
    merged: dict[tuple[str, int], tuple[Anchor, np.ndarray]] = {}
    for anchor in source.sentence_anchors(sentence):
        if not source.has_weights(anchor.id):
            continue
        inside = (starts < anchor.end) & (ends > anchor.start)
        before = source.layer_before(anchor.id) if options.rdp_agreement else np.nan
        key = (source.anchor_text(anchor).lower(), anchor.page)
        first, sums = merged.get(key, (anchor, np.zeros(2)))
        merged[key] = (first, sums + np.array([weighed.weights[inside].sum(), before]))
    anchors = [anchor for anchor, _ in merged.values()]
    both = np.array([weights for _, weights in merged.values()]).reshape(-1, 2)
    return anchors, both[:, 0], both[:, 1]


def draw_two(
    sentence: int, rng: np.random.Generator, source: BuildSource, options: DrawOptions
) -> tuple[Anchor, Anchor] | None:
    """Draw two anchors of a sentence by their weights, without replacement (eq. 11).

    A pair is not taken where both anchors lead to one page or to pages that are alike, or where
    their weights tie. With ``rdp_agreement``, nor is it where the layer before the last does not
    weigh the heavier one more, too; with ``rdp_max_in_link_ratio``, nor where the in-links of the
    two pages differ by more than this factor. With one of these options the pair is then drawn
    again, up to twenty times in all.

    Returns:
        The heavier anchor and the lighter one, or None where no such pair was drawn.
    """
    anchors, weights, before = anchor_importance(sentence, source, options)
    pages = np.array([anchor.page for anchor in anchors])
    if len(set(pages.tolist())) < 2:
        return None
    chances = distribution(weights, options, source.heads)
    is_drawn_again = options.rdp_agreement or options.rdp_max_in_link_ratio
    for _ in range(_TRIES_OF_PAIRS if is_drawn_again else 1):
        first = rng.choice(len(anchors), p=chances)
        rest = np.where(pages == pages[first], 0.0, chances)
        if not rest.any():
            continue
        second = rng.choice(len(anchors), p=rest / rest.sum())
        better, worse = sorted((first, second), key=lambda index: -weights[index])
        if weights[better] == weights[worse] or before[better] <= before[worse]:
            continue
        if _may_pair(anchors[better].page, anchors[worse].page, source, options):
            return anchors[better], anchors[worse]
    return None


def _may_pair(first: int, second: int, source: BuildSource, options: DrawOptions) -> bool:
    """Return whether anchors to these two pages may make a pair."""
    if source.are_alike(first, second, options):
        return False
    if not options.rdp_max_in_link_ratio:
        return True
    fewer, more = sorted(map(source.in_links_to, (first, second)))
    return more <= options.rdp_max_in_link_ratio * fewer


def draw_senses(
    rng: np.random.Generator, anchor: Anchor, source: BuildSource, options: DrawOptions
) -> tuple[Anchor | None, int | None]:
    """Draw an ordered pair of pages of an anchor's text, then an anchor that leads to the first.

    All ordered pairs are equally likely, so that each page is the positive as often as the
    negative, however many anchors lead to it. No pair is drawn of pages that are alike, or without
    an anchor whose words have weights and whose sentence does not link to the second page.

    Returns:
        An anchor and the second page, or None for both where ten draws give none. Unless
        ``qdm_negatives`` is ``pair_first``, the anchor itself and None.
    """
    if options.qdm_negatives != "pair_first":
        return anchor, None
    text = source.ambiguous_text(anchor.text_id)
    for _ in range(_TRIES_OF_SENSES):
        first, second = map(int, rng.choice(text.pages, size=2, replace=False))
        if source.are_alike(first, second, options):
            continue
        for id in rng.permutation(text.anchors[text.anchor_pages == first]).tolist():
            anchor = source.anchor(id)
            if source.has_weights(id) and second not in source.pages_linked_by(anchor.sentence):
                return anchor, second
    return None, None


def draw_other_page(rng: np.random.Generator, anchor: Anchor, source: BuildSource) -> int | None:
    """Draw another page of an anchor's text, as often as the text leads to it."""
    text = source.ambiguous_text(anchor.text_id)
    other = text.pages != anchor.page
    if not other.any():
        return None
    return int(rng.choice(text.pages[other], p=text.counts[other] / text.counts[other].sum()))
