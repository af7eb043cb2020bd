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
from harp_plugin.models.loading import model_fingerprint
from harp_plugin.weights.attention import AttentionWeigher
from harp_plugin.weights.build import build_weights
from harp_plugin.weights.options import WeightOptions
from harp_plugin.weights.weighed_texts import anchor_batch, beyond_storage, text_batch
from harp_plugin.work.manifest import read_manifest
from harp_plugin.work.mapped import open_table
from harp_plugin.work.provenance import OverwriteRules

pytestmark = pytest.mark.integration

LONG = " ".join(["leaf"] * 600)
PAGES = {
    "Apple": "An apple grows on a [[tree]]. No link here. The [[fruit]] of it is red.",
    "Tree": f"A tree {LONG} bears [[fruit]] and {LONG} an [[apple]].",
    "Fruit": "Sweet, as an [[Apple|apple fruit]] of a [[tree]] is; [[nowhere]].",
    "Alone": "Nothing leads here. It leads to [[fruit]].",
}


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
    manifest = build_weights(
        directory, WeightOptions(model=str(tiny_bert)), device="cpu", quiet=True
    )
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
    build_weights(directory, WeightOptions(model=str(tiny_bert)), device="cpu", quiet=True)
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


def test_wordpieces(directory, tiny_bert):
    """Wordpieces, and of an anchor the row of its first."""
    options = WeightOptions(model=str(tiny_bert), unit="wordpiece", anchor_row="first_piece")
    build_weights(directory, options, device="cpu", quiet=True)
    anchors = open_table(directory, "graph", "anchors")
    sentences = open_table(directory, "corpus", "sentences")
    rows = open_table(directory, "weights", "anchor_weights")
    texts = open_table(directory, "weights", "sentence_weights")
    model = AutoModel.from_pretrained(tiny_bert, attn_implementation="eager").eval()
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    assert len(rows) == 5
    for id in rows.ids.tolist():
        sentence = anchors.get(id, "sentence")
        inputs = tokenizer(
            sentences.get(sentence, "text"),
            truncation=True,
            max_length=512,
            return_tensors="pt",
            return_offsets_mapping=True,
        )
        offsets = inputs.pop("offset_mapping")[0].tolist()
        with torch.no_grad():
            mean = model(**inputs, output_attentions=True).attentions[-1][0].mean(dim=0).numpy()
        first = next(i for i, (_, end) in enumerate(offsets) if end > anchors.get(id, "start"))
        places = zip(texts.array(sentence, "starts"), texts.array(sentence, "ends"), strict=True)
        assert [list(place) for place in places] == offsets[1:-1]
        np.testing.assert_allclose(texts.array(sentence, "weights"), mean[0, 1:-1], rtol=1e-3)
        np.testing.assert_allclose(rows.array(id, "weights"), mean[first, 1:-1], rtol=1e-3)


def test_words_that_cannot_be_stored_are_counted(tmp_path, tiny_bert):
    """A word of 70,000 letters is one unknown token, so the model's limit does not cut it."""
    pages = {
        "Tree": f"A tree {'x' * 70_000} is red.",
        "Fruit": "Sweet, from a [[tree]].",
    }
    build_corpus(
        tmp_path, CorpusOptions(), sources=[write_dump(tmp_path / "d.xml", pages)], quiet=True
    )
    build_graph(tmp_path, GraphOptions(min_words=0))
    options = WeightOptions(model=str(tiny_bert))
    manifest = build_weights(tmp_path, options, device="cpu", quiet=True)
    assert manifest["drops"] == {"page with words beyond 65,535 characters, left out": 1}


@pytest.mark.parametrize("sign", ["\u0301", "\ue000"])
def test_an_anchor_that_the_tokenizer_drops(tmp_path, tiny_bert, sign):
    """It lies within the model's limit, and its drop says so."""
    pages = {
        "Tree": "A tree of [[fruit]] is red.",
        "Fruit": f"Sweet, from a [[Tree|{sign}]] and so on, and a [[tree]].",
    }
    build_corpus(
        tmp_path, CorpusOptions(), sources=[write_dump(tmp_path / "d.xml", pages)], quiet=True
    )
    build_graph(tmp_path, GraphOptions(min_words=0))
    manifest = build_weights(
        tmp_path, WeightOptions(model=str(tiny_bert)), device="cpu", quiet=True
    )
    assert manifest["drops"] == {"anchor without a token": 1}
    assert manifest["rows"]["anchor_weights"] == 2


def test_rows_have_the_words_that_can_be_stored(bert):
    texts = ["a tree", f"apple tree {'x' * 70_000} fruit", "fruit"]
    spans = [[(2, 6)], [(0, 5), (70_012, 70_017)], []]
    weigher = AttentionWeigher(str(bert), device="cpu")
    weighed = weigher.weigh_tokenized(weigher.tokenize(texts, spans))
    assert beyond_storage(weighed).tolist() == [False, True, False]
    starts = text_batch(np.arange(3), weighed).column("starts").to_pylist()
    assert starts == [[0, 2], [0, 6], [0]]
    rows = anchor_batch(np.arange(3), weighed).column("weights").to_pylist()
    assert [len(row) for row in rows] == [2, 2, 2]
    first = weighed.row_starts[1]
    np.testing.assert_allclose(rows[1], weighed.rows[first : first + 2], rtol=1e-3)


def test_weights_from_a_gpu_are_kept(directory, tiny_bert):
    """They are in bfloat16; where there is no GPU the default is float32."""
    there = WeightOptions(model=str(tiny_bert), dtype="bfloat16")
    first = build_weights(directory, there, device="cpu", quiet=True)
    here = WeightOptions(model=str(tiny_bert))
    assert build_weights(directory, here, device="cpu", quiet=True) == first
    here = WeightOptions(model=str(tiny_bert), dtype="float32")
    with pytest.raises(HarpError, match="dtype: bfloat16 then, float32 now"):
        build_weights(directory, here, device="cpu", quiet=True)
    rules = OverwriteRules(overwrite=True)
    again = build_weights(directory, here, device="cpu", quiet=True, rules=rules)
    assert again["settings"]["dtype"] == "float32"


@pytest.mark.slow
def test_no_fast_path_is_said_once_by_all_workers(directory, albert, capfd):
    options = WeightOptions(model=str(albert))
    with pytest.warns(UserWarning, match="no fast path") as caught:
        build_weights(directory, options, device="cpu", workers=2, quiet=True)
    assert len([warning for warning in caught if "no fast path" in str(warning.message)]) == 1
    assert "no fast path" not in capfd.readouterr().err


def test_finished_work_is_kept(directory, tiny_bert):
    options = WeightOptions(model=str(tiny_bert))
    first = build_weights(directory, options, device="cpu", quiet=True)
    files = {path: path.stat().st_mtime_ns for path in (directory / "weights").rglob("*.*")}
    assert build_weights(directory, options, device="cpu", quiet=True) == first
    assert files == {path: path.stat().st_mtime_ns for path in (directory / "weights").rglob("*.*")}


@pytest.mark.parametrize("model", ["/nowhere/at/all", "package:no-such-package"])
def test_missing_model(directory, model):
    with pytest.raises(HarpError, match=re.escape(model.removeprefix("package:"))) as caught:
        build_weights(directory, WeightOptions(model=model), device="cpu", quiet=True)
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
