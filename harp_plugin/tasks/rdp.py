"""Representative Document Prediction (HARP, section 3.2.3, eq. 10 to 12)."""

from __future__ import annotations

import numpy as np

from .base import Anchor, Source, sentences_of_several_pages
from .groups import Pair, PairGroup
from .options import DrawOptions
from .terms import distribution


class RDP:
    """For a sentence as a long query, the page of its weightier anchor beats the lighter one's."""

    @staticmethod
    def examples(graph):
        """Sentences that link to two pages or more."""
        return sentences_of_several_pages(graph)

    def draw(
        self, example: int, rng: np.random.Generator, source: Source, options: DrawOptions
    ) -> PairGroup | None:
        """Draw two anchors that lead to distinct pages; a tie of their weights gives nothing."""
        anchors, weights = anchor_importance(example, source, options)
        if len({anchor.page for anchor in anchors}) < 2:
            return None
        chances = distribution(weights, options, source.heads)
        if options.rdp_anchors == "all_pairs":
            first, second = rng.choice(len(anchors), size=2, replace=False)
        else:
            first = rng.choice(len(anchors), p=chances)
            rest = np.where([a.page == anchors[first].page for a in anchors], 0.0, chances)
            if not rest.any():
                return None
            second = rng.choice(len(anchors), p=rest / rest.sum())
        if weights[first] == weights[second]:
            return None
        if weights[first] < weights[second]:
            first, second = second, first
        query = source.sentence(example)
        better, worse = (Pair(query, source.document(anchors[i].page)) for i in (first, second))
        return PairGroup("rdp", better, (worse,))


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
