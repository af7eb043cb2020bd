"""Models that score pairs for a training, as its teachers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ranking import Scorer
from ..ranking.dense.encoder import Encoder
from ..ranking.dense.vectors import TextVectors
from ..ranking.tokens import distinct
from ..training.data import Teacher
from .options import COSINE

__all__ = ["COSINE_SCALE", "make_teacher", "products"]

COSINE_SCALE = 20.0
"""A cosine is multiplied by it, as in the losses of sentence-transformers."""


def make_teacher(
    model: str, *, max_length: int, device: str | None = None, dtype: str = "float32"
) -> Teacher:
    """Make a teacher of a model.

    Args:
        model: a cross-encoder, whose scores it gives; or ``cosine:`` and an encoder, whose cosines
            it gives, multiplied by 20.
        max_length: most tokens of a pair that a cross-encoder reads.
        device: such as ``cpu`` or ``cuda:1``; by default CUDA where there is one.
        dtype: type of the numbers that it computes with.

    Raises:
        HarpError: there is no such model, or its scores would be random.
    """
    if not model.startswith(COSINE):
        scorer = Scorer(model, max_length=max_length, device=device, dtype=dtype)
        return lambda queries, documents: np.asarray(scorer.score(queries, documents))
    encoder = Encoder(model.removeprefix(COSINE), device=device, dtype=dtype)
    return lambda queries, documents: COSINE_SCALE * products(encoder, queries, documents)


def products(
    encoder: Encoder | TextVectors, queries: Sequence[str], documents: Sequence[str]
) -> np.ndarray:
    """Return the product of the vectors of each pair, (pairs,); a text is encoded once."""
    query_of, distinct_queries = distinct(queries)
    document_of, distinct_documents = distinct(documents)
    of_queries = encoder.queries(distinct_queries)[query_of]
    return (of_queries * encoder.documents(distinct_documents)[document_of]).sum(axis=1)
