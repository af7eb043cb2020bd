"""How much each anchor of a sentence weighs (HARP, section 3.2.3)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .options import DrawOptions
from .source import Anchor, BuildSource
from .terms import distribution

__all__ = ["Importance", "anchor_importance", "draw_two"]

_TRIES = 20


class Importance(NamedTuple):
    """Anchors of a sentence with their weights, seen from [CLS] (η of eq. 11).

    Attributes:
        anchors: the anchors.
        weights: by the last layer, float64 of shape (anchors,).
        layer_before: by the layer before the last, of the same shape; NaN where it is not asked
            for, or where the words were not weighed by attention.
    """

    anchors: list[Anchor]
    weights: np.ndarray
    layer_before: np.ndarray


def anchor_importance(sentence: int, source: BuildSource, options: DrawOptions) -> Importance:
    """Weigh the anchors of a sentence, seen from [CLS] (eq. 10 and 11's η).

    An anchor's weight is the sum over the words in its span; anchors of equal text are one, with
    their weights added up. The layer before the last is read where ``rdp_agreement`` needs it.

    Raises:
        HarpError: it is needed, but the build is older and lacks it.
    """
    weighed = source.weighed_sentence(sentence)
    merged: dict[tuple, tuple[Anchor, np.ndarray]] = {}
    for anchor in source.sentence_anchors(sentence):
        if not source.has_weights(anchor.id):
            continue
        starts, ends = weighed.spans.T
        inside = (starts < anchor.end) & (ends > anchor.start)
        before = source.layer_before(anchor.id) if options.rdp_agreement else np.nan
        weights = np.array([weighed.weights[inside].sum(), before])
        if options.rdp_anchor_weight == "mean":
            weights /= max(1, int(inside.sum()))
        apart = anchor.id if options.rdp_repeats == "apart" else None
        key = (source.anchor_text(anchor).lower(), anchor.page, apart)
        first, sums = merged.get(key, (anchor, np.zeros(2)))
        merged[key] = (first, sums + weights)
    anchors = [anchor for anchor, _ in merged.values()]
    both = np.array([weights for _, weights in merged.values()]).reshape(-1, 2)
    return Importance(anchors, both[:, 0], both[:, 1])


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
    importance = anchor_importance(sentence, source, options)
    if len({anchor.page for anchor in importance.anchors}) < 2:
        return None
    chances = distribution(importance.weights, options, source.heads)
    is_drawn_again = options.rdp_agreement or options.rdp_max_in_link_ratio
    for _ in range(_TRIES if is_drawn_again else 1):
        places = _draw_places(importance.anchors, chances, rng, options)
        if places is None:
            continue
        better, worse = sorted(places, key=lambda place: -importance.weights[place])
        if _may_pair(importance, better, worse, source, options):
            return importance.anchors[better], importance.anchors[worse]
    return None


def _draw_places(
    anchors: list[Anchor], chances: np.ndarray, rng: np.random.Generator, options: DrawOptions
) -> tuple[int, int] | None:
    """Draw the places of two anchors; None where no second one has a chance."""
    if options.rdp_anchors == "all_pairs":
        first, second = rng.choice(len(anchors), size=2, replace=False)
        return first, second
    first = rng.choice(len(anchors), p=chances)
    same_page = [anchor.page == anchors[first].page for anchor in anchors]
    rest = np.where(same_page, 0.0, chances)
    if not rest.any():
        return None
    return first, rng.choice(len(anchors), p=rest / rest.sum())


def _may_pair(
    importance: Importance, better: int, worse: int, source: BuildSource, options: DrawOptions
) -> bool:
    """Tell whether the heavier and the lighter anchor at these places may make a pair."""
    anchors, weights, before = importance
    pages = anchors[better].page, anchors[worse].page
    if weights[better] == weights[worse] or before[better] <= before[worse]:
        return False
    if source.are_alike(*pages, options):
        return False
    if not options.rdp_max_in_link_ratio:
        return True
    fewer, more = sorted(map(source.in_links_to, pages))
    return more <= options.rdp_max_in_link_ratio * fewer
