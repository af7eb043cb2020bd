"""How much each anchor of a sentence weighs (HARP, section 3.2.3)."""

from __future__ import annotations

import numpy as np

from .options import DrawOptions
from .source import Anchor, BuildSource

__all__ = ["anchor_importance"]


def anchor_importance(
    sentence: int, source: BuildSource, options: DrawOptions
) -> tuple[list[Anchor], np.ndarray]:
    """Weigh the anchors of a sentence, seen from [CLS] (eq. 10 and 11's η).

    An anchor's weight is the sum over the words in its span; anchors of equal text are one, with
    their weights added up.

    Returns:
        The anchors, and their weights as float64 of shape (anchors,).
    """
    weighed = source.weighed_sentence(sentence)
    merged: dict[tuple, tuple[Anchor, float]] = {}
    for anchor in source.sentence_anchors(sentence):
        if not source.has_weights(anchor.id):
            continue
        starts, ends = weighed.spans.T
        inside = (starts < anchor.end) & (ends > anchor.start)
        weight = float(weighed.weights[inside].sum())
        if options.rdp_anchor_weight == "mean":
            weight /= max(1, int(inside.sum()))
        apart = anchor.id if options.rdp_repeats == "apart" else None
        key = (source.anchor_text(anchor).lower(), anchor.page, apart)
        first, before = merged.get(key, (anchor, 0.0))
        merged[key] = (first, before + weight)
    anchors = [anchor for anchor, _ in merged.values()]
    return anchors, np.array([weight for _, weight in merged.values()])
