"""How much each anchor of a sentence weighs (HARP, section 3.2.3)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .options import DrawOptions
from .source import Anchor, BuildSource
from .terms import distribution

__all__ = ["Importance", "anchor_importance", "draw_two"]


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

    Returns:
        The heavier anchor and the lighter one, or None where they lead to one page or to pages that
        are alike, where their weights tie, or where the layer before the last does not weigh the
        first more, too.
    """
    anchors, weights, before = anchor_importance(sentence, source, options)
    if len({anchor.page for anchor in anchors}) < 2:
        return None
    chances = distribution(weights, options, source.heads)
    if options.rdp_anchors == "all_pairs":
        first, second = rng.choice(len(anchors), size=2, replace=False)
    else:
        first = rng.choice(len(anchors), p=chances)
        same_page = [anchor.page == anchors[first].page for anchor in anchors]
        rest = np.where(same_page, 0.0, chances)
        if not rest.any():
            return None
        second = rng.choice(len(anchors), p=rest / rest.sum())
    if weights[first] < weights[second]:
        first, second = second, first
    better, worse = anchors[first], anchors[second]
    alike = options.alike_negatives != "allowed" and source.are_alike(better.page, worse.page)
    if alike or weights[first] == weights[second] or before[first] <= before[second]:
        return None
    return better, worse
