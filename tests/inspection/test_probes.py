"""Checks that need an encoder: what only a sequence model sees is found, by pages of its own."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from observed_groups import grouped, observed
from transformers import AutoModel

from harp_plugin.inspection.checks import CHECKS, Level
from harp_plugin.inspection.groups import AuditedGroups, page_units
from harp_plugin.inspection.text_encoder import TextEncoder
from harp_plugin.sampling import stable_id
from harp_plugin.tasks import PreTrainingData

METALS = ["iron", "silver", "gold", "tin", "lead"]
OTHERS = ["sun", "moon", "star", "sea", "land", "tree", "stone", "fire", "wind", "rain"]
NAMES = [f"{first} {second}" for first in OTHERS for second in [*METALS, "red"]]
WORDS = ["red", "blue", "green", *METALS, *OTHERS]


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


def groups_of(make, encoder, count=600, planted=True, **fields) -> AuditedGroups:
    rng = random.Random(5)
    return grouped([make(rng, planted) for _ in range(count)], encoder=encoder, **fields)


def test_an_order_that_a_bag_of_words_cannot_see_is_found(encoder):
    planted, plain = (groups_of(in_order, encoder, planted=is_so) for is_so in (True, False))
    found = CHECKS["query_probe"].run("query_probe", planted)
    assert (found.level, found.measurement.value) == (Level.RED, pytest.approx(1, abs=0.1))
    assert CHECKS["query_probe"].run("query_probe", plain).level is Level.GREEN
    assert found.measurement == CHECKS["query_probe"].measure(planted)


def of_a_kind(rng: random.Random, planted: bool):
    """Two documents: the words of the positive are metals, those of the negative are not."""
    kinds = [rng.sample(METALS, 3), rng.sample(OTHERS, 3)]
    if not planted and rng.random() < 0.5:
        kinds.reverse()
    return observed(*(("q", " ".join([*kind, str(rng.randrange(10**6))])) for kind in kinds))


def test_documents_of_a_kind_of_their_own_are_found(encoder):
    planted, plain = (groups_of(of_a_kind, encoder, planted=is_so) for is_so in (True, False))
    found = CHECKS["document_probe"].run("document_probe", planted)
    assert found.level is Level.RED and found.measurement.value > 0.9
    assert CHECKS["document_probe"].run("document_probe", plain).level is Level.GREEN
    assert CHECKS["query_probe"].measure(planted) is None
    assert found.measurement == CHECKS["document_probe"].measure(planted)


def about_other_pages(rng: random.Random, planted: bool):
    """Queries that name their page, as RQP's: each page has as many positives as negatives."""
    page, other = rng.sample(range(60), 2)
    return observed((NAMES[page], f"d{page}"), (NAMES[other], f"d{page}"))


def units_of_names(pair, side):
    return {stable_id("text", text) for text in (pair.document, f"d{NAMES.index(pair.query)}")}


def test_a_query_about_a_page_that_is_held_out_has_no_label_in_training(encoder):
    """Where only the document's page is held out, its name is seen in negatives alone."""
    groups = groups_of(about_other_pages, encoder, count=2000)
    apart = replace(groups, units=units_of_names)
    assert CHECKS["query_probe"].measure(groups).value < 0.4
    assert CHECKS["query_probe"].measure(apart).value == pytest.approx(0.5, abs=0.1)


def test_a_query_is_about_the_page_that_its_anchor_leads_to(build):
    data = PreTrainingData(build, {"rqp": 1})
    for number in range(20):
        group = data.group(0, number)
        anchors = [data.source.anchor(pair.query_origin.anchor) for pair in group.members]
        leads = [data.source.lead(anchor.page) for anchor in anchors]
        assert len({*leads}) == 2 and group.positive.document in leads
        for pair, lead in zip(group.members, leads, strict=True):
            units = page_units(pair, "query", data.source, data.draw_options)
            assert units == {stable_id("text", text) for text in (pair.document, lead)}
            [unit] = page_units(pair, "document", data.source, data.draw_options)
            assert unit == stable_id("text", pair.document)


def test_vectors_and_cosine_are_those_of_the_model(encoder, tiny_bert):
    texts = ["The sun.", "moon " * 300, "red blue green", "The sun."]
    model = AutoModel.from_pretrained(tiny_bert).eval()
    expected = []
    for text in texts:
        ids = encoder.tokenizer(text, truncation=True, max_length=128, return_tensors="pt")
        with torch.inference_mode():
            states = model(**ids, output_hidden_states=True).hidden_states
        layers = [
            part for state in (states[1], states[2]) for part in (state[0, 0], state[0].mean(0))
        ]
        expected.append(torch.cat(layers).numpy())
    assert np.allclose(encoder.embed(texts), expected, atol=1e-5)
    first, second = expected[0][-32:], expected[2][-32:]
    cosine = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
    assert encoder.cosine(texts[0], texts[2]) == pytest.approx(cosine, abs=1e-5)


def test_without_an_encoder_the_checks_are_absent(encoder):
    groups = groups_of(in_order, None)
    for name in ("query_probe", "document_probe", "higher_cosine"):
        assert CHECKS[name].measure(groups) is None
    assert CHECKS["higher_cosine"].measure(groups_of(of_a_kind, encoder)).groups == 600
