"""The weights of texts, text by text."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from harp_plugin.weights.weighed_texts import WeighedTexts

__all__ = ["ByText", "weigh"]


class Weights(NamedTuple):
    """Those of one text: spans of words, rows of [CLS] and of the anchors, whether it was cut."""

    spans: np.ndarray
    cls: np.ndarray
    anchors: np.ndarray
    layer_before: np.ndarray
    cut: bool


class ByText(list[Weights]):
    """The weights of each text, and where the words of all stand."""

    def __init__(self, weighed: WeighedTexts) -> None:
        self.words = words = weighed.words
        for number in range(len(weighed)):
            inside = slice(*words.starts[number : number + 2])
            first, after = words.anchor_starts[number : number + 2]
            rows = weighed.rows[weighed.row_starts[first] : weighed.row_starts[after]]
            rows = rows.reshape(after - first, inside.stop - inside.start)
            before = weighed.layer_before[first:after]
            cut = bool(words.cut[number])
            self.append(Weights(words.spans[inside], weighed.cls[inside], rows, before, cut))


def weigh(weigher, texts, anchors=None) -> ByText:
    """Weigh texts with the spans of their anchors."""
    return ByText(weigher.weigh_tokenized(weigher.tokenize(texts, anchors)))
