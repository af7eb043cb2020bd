"""Checks that need an encoder: what only a sequence model sees is found, by pages of its own."""

from __future__ import annotations

import random
from itertools import islice

import numpy as np
import pytest
import torch
from observed_groups import observed
from transformers import AutoModel

from harp_plugin.inspection.check import Level
from harp_plugin.inspection.checks import CHECKS
from harp_plugin.inspection.measurements import AuditedGroups
from harp_plugin.inspection.text_encoder import TextEncoder

WORDS = "red blue green gold iron silver sun moon star sea land tree stone fire wind rain".split()


@pytest.fixture(scope="module")
def encoder(tiny_bert) -> TextEncoder:
    return TextEncoder(str(tiny_bert))


def in_order(rng: random.Random, planted: bool):
    """Two queries of the same words: "the" stands first in one, and last in the other."""
    words = rng.sample(WORDS, 3)
    queries = [" ".join(["the", *words]), " ".join([*words, "the"])]
    if not planted and rng.random() < 0.5:
        queries.reverse()
    page = f"page {rng.randrange(40)}"
    return observed((queries[0], page), (queries[1], page))


def groups_of(make, encoder, count=300, more=2500, planted=True, seed=1) -> AuditedGroups:
    rng = random.Random(5)
    observations = [make(rng, planted) for _ in range(count)]

    def others():
        other = random.Random(6)
        return (make(other, planted).group for _ in range(more))

    return AuditedGroups("some", observations, 0, seed, encoder=encoder, more_groups=others)


def test_an_order_that_a_bag_of_words_cannot_see_is_found(encoder):
    planted, plain = (groups_of(in_order, encoder, planted=is_so) for is_so in (True, False))
    found = CHECKS["query_probe"].run("query_probe", planted)
    assert (found.level, found.value) == (Level.RED, pytest.approx(1, abs=0.1))
    assert CHECKS["query_alone"].measure(planted).decided == 0
    assert CHECKS["query_probe"].run("query_probe", plain).level is Level.GREEN
    assert found.measurement == CHECKS["query_probe"].measure(planted)
