"""Representative wOrds Prediction (PROP, section 3.1, algorithm 1, eq. 2 to 4)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..sampling import zero_truncated_poisson
from .groups import DocumentOrigin, Pair, PairGroup, QueryOrigin
from .options import DrawOptions
from .source import BuildSource

__all__ = ["ROP"]

_ROUNDING = 1e-9


class ROP:
    """Of two word sets drawn for a document, the one that its language model makes likelier."""

    citation = "ma2021prop"
    stages = ("words",)
    groups_per_example = 5

    @staticmethod
    def examples(graph):
        """Select every document."""
        return graph["documents"].select("id")

    def draw(
        self, example: int, rng: np.random.Generator, source: BuildSource, options: DrawOptions
    ) -> PairGroup | None:
        """Draw two word sets of one length; a tie of their likelihoods gives nothing."""
        document = source.counted_text(example, options)
        model = source.language_model(options).document(document)
        size = zero_truncated_poisson(rng)
        sets = [drawn for drawn in (model.draw(rng, size) for _ in range(2)) if drawn is not None]
        likelihoods = [model.log_likelihood(drawn) for drawn in sets]
        if not sets or not max(likelihoods) - min(likelihoods) > _ROUNDING:
            return None
        texts = [" ".join(model.words(drawn)) for drawn in sets]
        better = likelihoods.index(max(likelihoods))
        origins = QueryOrigin(example), DocumentOrigin(example)
        positive = Pair(texts[better], document, *origins)
        negative = replace(positive, query=texts[1 - better])
        return PairGroup("prop", positive, (negative,))
