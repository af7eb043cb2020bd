"""How much each anchor of a sentence weighs (HARP, section 3.2.3)."""

from __future__ import annotations

import numpy as np

from .base import Anchor, Source
from .options import DrawOptions


def anchor_importance(
    sentence: int, source: Source, options: DrawOptions
) -> tuple[list[Anchor], np.ndarray]:
    """The anchors of a sentence and their weights seen from [CLS] (eq. 10 and 11's η).

    An anchor's weight is the sum over the words in its span; anchors of equal text are one, with
    their weights added up.
    """
    spans, weights = source.sentence_spans(sentence)
    merged: dict[tuple, tuple[Anchor, float]] = {}
    for anchor in source.anchors_of(sentence):
        if not source.has_weights(anchor.id):
            continue
        inside = (spans[:, 0] < anchor.end) & (spans[:, 1] > anchor.start)
        weight = float(weights[inside].sum())
        if options.rdp_anchor_weight == "mean":
            weight /= max(1, int(inside.sum()))
        apart = anchor.id if options.rdp_repeats == "apart" else None
        key = (source.anchor_text(anchor).lower(), anchor.page, apart)
        first, before = merged.get(key, (anchor, 0.0))
        merged[key] = (first, before + weight)
    anchors = [anchor for anchor, _ in merged.values()]
    return anchors, np.array([weight for _, weight in merged.values()])
