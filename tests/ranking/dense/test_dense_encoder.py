"""Vectors of texts: pooling, longest input; and models that are refused."""

import json
import shutil

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from transformers import AutoModel, AutoTokenizer

from harp_plugin.errors import HarpError
from harp_plugin.ranking.dense.encoder import Encoder
from harp_plugin.ranking.dense.vectors import LibraryVectors, TextVectors

TEXTS = ["A link leads ON", "dogs bark at unaffordable electrocardiograms", "", "one two " * 30]


@pytest.fixture(scope="module")
def cls_encoder(tiny_bert, tmp_path_factory):
    """The vector of [CLS], of at most 12 tokens, with a prompt for queries."""
    transformer = Transformer(str(tiny_bert), max_seq_length=12)
    pooling = Pooling(32, pooling_mode="cls")
    folder = tmp_path_factory.mktemp("cls")
    model = SentenceTransformer(
        modules=[transformer, pooling, Normalize()], device="cpu", prompts={"query": "find: "}
    )
    model.save(str(folder))
    return folder


@pytest.fixture(scope="module")
def dot_encoder(tiny_bert, tmp_path_factory):
    """The mean over tokens, whose length is not changed."""
    folder = tmp_path_factory.mktemp("dot")
    modules = [Transformer(str(tiny_bert)), Pooling(32, pooling_mode="mean")]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder))
    return folder


@pytest.fixture(params=["packed", "padded"], autouse=True)
def way(request, monkeypatch):
    """Texts are packed by us, or padded by sentence-transformers."""
    if request.param == "padded":
        monkeypatch.setattr(TextVectors, "load", lambda *_: None)
    return request.param


def encoder(model, **options):
    return Encoder(model, device="cpu", **options)


def by_hand(folder, text, pool, max_length=512):
    """One text at a time, by transformers alone."""
    tokens = AutoTokenizer.from_pretrained(folder)(
        text, truncation=True, max_length=max_length, return_tensors="pt"
    )
    with torch.no_grad():
        states = AutoModel.from_pretrained(folder).eval()(**tokens).last_hidden_state[0]
    vector = states.mean(0) if pool == "mean" else states[0]
    return (vector / vector.norm()).numpy()


def test_a_plain_checkpoint_gives_the_mean_over_tokens(tiny_bert):
    vectors = encoder(tiny_bert).documents(TEXTS)
    expected = [by_hand(tiny_bert, text, "mean") for text in TEXTS]
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


def test_pooling_prompt_and_longest_input_are_the_folders(cls_encoder):
    vectors = encoder(cls_encoder).documents(TEXTS)
    expected = [by_hand(cls_encoder, text, "cls", 12) for text in TEXTS]
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    expected = [by_hand(cls_encoder, f"find: {text}", "cls", 12) for text in TEXTS]
    np.testing.assert_allclose(encoder(cls_encoder).queries(TEXTS), expected, atol=1e-5)


@pytest.mark.parametrize("longest", [6, 40])
def test_the_longest_input_may_be_chosen(cls_encoder, longest):
    ours = encoder(cls_encoder, max_length=longest)
    expected = [by_hand(cls_encoder, text, "cls", longest) for text in TEXTS]
    np.testing.assert_allclose(ours.documents(TEXTS), expected, atol=1e-5)
    expected = [by_hand(cls_encoder, f"find: {text}", "cls", longest) for text in TEXTS]
    np.testing.assert_allclose(ours.queries(TEXTS), expected, atol=1e-5)
    assert ours.settings != encoder(cls_encoder).settings


@pytest.mark.parametrize("longest", [2, 100_000])
def test_a_longest_input_that_the_model_does_not_take(cls_encoder, longest):
    with pytest.raises(HarpError, match=rf"max_length is {longest}: this encoder takes 3 to \d+"):
        encoder(cls_encoder, max_length=longest).documents(TEXTS)


def changed(folder, file, **settings):
    """Change a file of an encoder."""
    path = folder / file
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))


@pytest.mark.parametrize(
    ("file", "settings", "packs"),
    [
        ("sentence_bert_config.json", {"max_seq_length": 7}, True),
        ("config_sentence_transformers.json", {"prompts": {"passage": "of links: "}}, True),
        (
            "config_sentence_transformers.json",
            {"prompts": {"x": "all: "}, "default_prompt_name": "x"},
            False,
        ),
        ("1_Pooling/config.json", {"include_prompt": False, "pooling_mode": "mean"}, False),
        ("1_Pooling/config.json", {"pooling_mode": "max"}, False),
        ("1_Pooling/config.json", {"pooling_mode": "lasttoken"}, True),
        ("sentence_bert_config.json", {"do_lower_case": True}, True),  # as its tokenizer does
    ],
)
def test_every_setting_counts(cls_encoder, tmp_path, way, file, settings, packs):
    folder = shutil.copytree(cls_encoder, tmp_path / "encoder")
    changed(folder, file, **settings)
    theirs, ours = SentenceTransformer(str(folder), device="cpu"), encoder(folder)
    documents = ours.documents(TEXTS)
    np.testing.assert_allclose(documents, theirs.encode_document(TEXTS), atol=1e-5)
    np.testing.assert_allclose(ours.queries(TEXTS), theirs.encode_query(TEXTS), atol=1e-5)
    expected = TextVectors if packs and way == "packed" else LibraryVectors
    assert isinstance(ours._loaded, expected)


def test_the_fingerprint_covers_the_modules(cls_encoder, tmp_path):
    copy = shutil.copytree(cls_encoder, tmp_path / "copy")
    assert encoder(copy).fingerprint == encoder(cls_encoder).fingerprint
    config = copy / "1_Pooling" / "config.json"
    config.write_text(config.read_text().replace("cls", "mean"))
    assert encoder(copy).fingerprint != encoder(cls_encoder).fingerprint


def test_code_of_a_model_is_not_run(cls_encoder, tmp_path):
    copy = shutil.copytree(cls_encoder, tmp_path / "copy")
    modules = json.loads((copy / "modules.json").read_text())
    modules[1]["type"] = "evil.Module"
    (copy / "modules.json").write_text(json.dumps(modules))
    (copy / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Module: pass\n")
    with pytest.raises(HarpError, match="cannot load model"):
        encoder(copy).queries(["a"])
    assert not (tmp_path / "ran").exists()


def test_pickled_weights_of_a_module_are_refused(cls_encoder, tmp_path):
    copy = shutil.copytree(cls_encoder, tmp_path / "copy")
    torch.save({}, copy / "1_Pooling" / "pytorch_model.bin")
    with pytest.raises(HarpError, match="which may run code: save the model as safetensors"):
        encoder(copy).queries(["a"])


def test_an_encoder_without_pooling_is_named(tiny_bert, tmp_path):
    SentenceTransformer(modules=[Transformer(str(tiny_bert))], device="cpu").save(str(tmp_path))
    with pytest.raises(HarpError, match="no part Pooling, which makes one vector of a text"):
        encoder(tmp_path).queries(["a"])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("no/such/model/here", "no model at no/such/model/here"),
        ("package:no-such-package", "package no-such-package is not installed"),
    ],
)
def test_models_that_are_not_there(model, message):
    with pytest.raises(HarpError, match=message):
        encoder(model).queries(["a"])


def test_arguments_without_a_meaning(tiny_bert):
    with pytest.raises(HarpError, match="dtype is 'int8': it must be one of float32"):
        encoder(tiny_bert, dtype="int8")
