"""The weights stage: its tables, its drops, and what it says without a model."""

import re
import shutil

import numpy as np
import pytest
import torch
from dumps import write_dump
from transformers import AutoModel, AutoTokenizer

from harp_plugin.corpus.build import build_corpus
from harp_plugin.corpus.options import CorpusOptions
from harp_plugin.errors import HarpError
from harp_plugin.graph import GraphOptions, build_graph
from harp_plugin.models import model_fingerprint
from harp_plugin.storage import open_table, read_manifest
from harp_plugin.weights.attention import AttentionWeigher
from harp_plugin.weights.build import build_weights
from harp_plugin.weights.options import WeightOptions

LONG = " ".join(["leaf"] * 600)
PAGES = {
    "Apple": "An apple grows on a [[tree]]. No link here. The [[fruit]] of it is red.",
    "Tree": f"A tree {LONG} bears [[fruit]] and {LONG} an [[apple]].",
    "Fruit": "Sweet, as an [[Apple|apple fruit]] of a [[tree]] is; [[nowhere]].",
    "Alone": "Nothing leads here. It leads to [[fruit]].",
}


@pytest.fixture
def directory(tmp_path):
    source = write_dump(tmp_path / "d.xml", PAGES)
    build_corpus([source], tmp_path, CorpusOptions(pages_per_shard=2), quiet=True)
    build_graph(tmp_path, GraphOptions(min_words=0))
    return tmp_path


def cls_words(folder, text):
    """Every word of a short text with the attention of [CLS], by the eager model, in a loop."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    encoded = tokenizer(text, return_tensors="pt", return_offsets_mapping=True)
    offsets = encoded.pop("offset_mapping")[0].tolist()
    with torch.no_grad():
        row = model(**encoded, output_attentions=True).attentions[-1][0].mean(dim=0)[0].tolist()
    spans = [match.span() for match in re.finditer(r"\w+", text)]
    return spans, [
        sum(row[i] for i, (start, end) in enumerate(offsets) if begin <= start < end <= finish)
        for begin, finish in spans
    ]


def test_tables(directory, tiny_bert):
    manifest = build_weights(directory, WeightOptions(str(tiny_bert)), device="cpu", quiet=True)
    assert manifest["heads"] == 2
    # Two sentences of Apple, one each of Tree, Fruit and Alone; three pages with in-links.
    assert manifest["rows"] == {"sentence_weights": 5, "page_weights": 3, "anchor_weights": 5}
    assert manifest["drops"] == {
        "sentence cut at the model's limit": 1,
        "page cut at the model's limit": 1,
        "anchor beyond the model's limit": 2,
    }
    pages = open_table(directory, "corpus", "pages")
    weights = open_table(directory, "weights", "page_weights")
    keys = {pages.get(int(id), "key"): int(id) for id in pages.ids}
    assert {int(id) for id in weights.ids} == {keys[key] for key in ("Apple", "Tree", "Fruit")}
    lead = pages.get(keys["Fruit"], "lead")
    spans, expected = cls_words(tiny_bert, lead)
    starts, ends = (weights.array(keys["Fruit"], name) for name in ("starts", "ends"))
    assert starts.dtype == np.uint16
    assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == spans
    stored = weights.array(keys["Fruit"], "weights")
    assert stored.dtype == np.float16
    np.testing.assert_allclose(stored, expected, rtol=1e-3)
    tree = weights.array(keys["Tree"], "starts")
    assert 500 < len(tree) < 512


def test_anchor_rows_belong_to_their_anchors(directory, tiny_bert):
    build_weights(directory, WeightOptions(str(tiny_bert)), device="cpu", quiet=True)
    anchors = open_table(directory, "graph", "anchors")
    sentences = open_table(directory, "corpus", "sentences")
    rows = open_table(directory, "weights", "anchor_weights")
    texts = open_table(directory, "weights", "sentence_weights")
    model = AutoModel.from_pretrained(tiny_bert, attn_implementation="eager").eval()
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    for id in rows.ids.tolist():
        sentence = anchors.get(id, "sentence")
        text = sentences.get(sentence, "text")
        inputs = tokenizer(text, return_tensors="pt", return_offsets_mapping=True)
        offsets = inputs.pop("offset_mapping")[0].tolist()
        with torch.no_grad():
            mean = model(**inputs, output_attentions=True).attentions[-1][0].mean(dim=0).numpy()
        start, end = anchors.get(id, "start"), anchors.get(id, "end")
        pieces = [i for i, (a, b) in enumerate(offsets) if a < end and b > start]
        row = mean[pieces].mean(axis=0)
        words = zip(texts.array(sentence, "starts"), texts.array(sentence, "ends"), strict=True)
        expected = [
            sum(row[i] for i, (a, b) in enumerate(offsets) if first <= a < b <= last)
            for first, last in words
        ]
        np.testing.assert_allclose(rows.array(id, "weights"), expected, rtol=1e-3)


def test_finished_work_is_kept(directory, tiny_bert):
    options = WeightOptions(str(tiny_bert))
    first = build_weights(directory, options, device="cpu", quiet=True)
    files = {path: path.stat().st_mtime_ns for path in (directory / "weights").rglob("*.*")}
    assert build_weights(directory, options, device="cpu", quiet=True) == first
    assert files == {path: path.stat().st_mtime_ns for path in (directory / "weights").rglob("*.*")}


@pytest.mark.parametrize("model", ["/nowhere/at/all", "package:no-such-package"])
def test_missing_model(directory, model):
    with pytest.raises(HarpError, match=re.escape(model.removeprefix("package:"))) as caught:
        build_weights(directory, WeightOptions(model), device="cpu", quiet=True)
    assert "\n" not in str(caught.value)
    with pytest.raises(HarpError):
        read_manifest(directory / "weights")


def test_only_safetensors(tiny_bert, tmp_path):
    shutil.copytree(tiny_bert, tmp_path / "model")
    weights = AutoModel.from_pretrained(tiny_bert).state_dict()
    (tmp_path / "model" / "model.safetensors").unlink()
    torch.save(weights, tmp_path / "model" / "pytorch_model.bin")
    with pytest.raises(HarpError, match="safetensors"):
        AttentionWeigher(str(tmp_path / "model"), device="cpu")


def test_fingerprint_of_a_model(tiny_bert, tmp_path):
    """The same wherever it lies; another when one byte of its weights is."""
    shutil.copytree(tiny_bert, tmp_path / "model")
    assert model_fingerprint(str(tmp_path / "model")) == model_fingerprint(str(tiny_bert))
    with (tmp_path / "model" / "model.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        last = file.read(1)[0]
        file.seek(-1, 2)
        file.write(bytes([last ^ 1]))
    assert model_fingerprint(str(tmp_path / "model")) != model_fingerprint(str(tiny_bert))
