"""Damaged and lying model folders are refused in one line: no traceback, and no code is run."""

import json
import pickle
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSequenceClassification

from harp_plugin.errors import HarpError
from harp_plugin.models.cross_encoder import TrainableCrossEncoder
from harp_plugin.models.loading import load_pretrained, load_tokenizer
from harp_plugin.ranking import Scorer

pytestmark = pytest.mark.integration

WEIGHTS = "model.safetensors"
QUERIES, DOCUMENTS = ["red apple", "green pear"], ["An apple is red.", "A pear is a fruit."]


class Hostile:
    """Unpickled, it writes a file in the working directory."""

    def __reduce__(self):
        return (Path.touch, (Path("code-was-run"),))


def write(name, content):
    data = content if isinstance(content, bytes) else content.encode()
    return lambda folder: (folder / name).write_bytes(data)


def update(name, **changes):
    def damage(folder):
        path = folder / name
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return damage


def config(**changes):
    return update("config.json", **changes)


def remove(*names):
    return lambda folder: [(folder / name).unlink() for name in names]


def cut(name):
    def damage(folder):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])

    return damage


def pickled_weights(folder):
    (folder / WEIGHTS).unlink()
    torch.save(Hostile(), folder / "pytorch_model.bin")


def own_code(name, **entry):
    """Name a class of the folder's own Python file, which writes a file when it is imported."""

    def damage(folder):
        (folder / "own.py").write_text("open('code-was-run', 'w')\nclass Own: pass\n")
        update(name, **entry)(folder)

    return damage


def without_a_base_weight(folder):
    weights = load_file(folder / WEIGHTS)
    del weights["bert.encoder.layer.0.output.dense.weight"]
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})


AUTO_MAP = {"AutoConfig": "own.Own", "AutoModelForSequenceClassification": "own.Own"}
ADAPTER = json.dumps({"base_model_name_or_path": "x", "peft_type": "LORA"})
REFUSED = {
    "own model class": (
        own_code("config.json", model_type="own", auto_map=AUTO_MAP),
        "contains custom code",
    ),
    "pickled weights": (pickled_weights, "no file named model.safetensors"),
    "weights are a pickle": (write(WEIGHTS, pickle.dumps(Hostile())), "header"),
    "adapter": (write("adapter_config.json", ADAPTER), "holds an adapter"),
    "kernel of the hub": (config(attn_implementation="a/kernel"), "not part of its package"),
    "kernel in a part": (
        config(text_config={"_attn_implementation": "a/kernel"}),
        "not part of its package",
    ),
    "quantized": (config(quantization_config={"quant_method": "x"}), "are quantized"),
    "config is a list": (write("config.json", "[]"), "cannot load model"),
    "config is empty": (write("config.json", ""), "is not a valid JSON file"),
    "config is missing": (remove("config.json"), "it has no config.json"),
    "unknown type": (config(model_type="no-such-model"), "does not recognize"),
    "heads do not divide": (config(num_attention_heads=3), "not a multiple"),
    "one layer more": (config(num_hidden_layers=3), "bert.encoder"),
    "other hidden size": (config(hidden_size=64), "cannot load model|lacks"),
    "vocabulary too small": (config(vocab_size=100), "largest token is 30521"),
    "a base weight is missing": (without_a_base_weight, "bert.encoder"),
    "weights are missing": (remove(WEIGHTS), "no file named model.safetensors"),
    "weights are cut off": (cut(WEIGHTS), "not fully covered"),
    "tokenizer is missing": (remove("tokenizer.json", "tokenizer_config.json"), "tokenizer"),
    "tokenizer is cut off": (cut("tokenizer.json"), "Expecting ':' delimiter"),
}
HARMLESS = {
    "code that nothing asks for": write("own.py", "open('code-was-run', 'w')"),
    "code next to a known class": own_code("config.json", auto_map=AUTO_MAP),
    "code of a tokenizer": own_code(
        "tokenizer_config.json", auto_map={"AutoTokenizer": ["own.Own", "own.Own"]}
    ),
    "a pickle next to the weights": lambda folder: torch.save(
        Hostile(), folder / "pytorch_model.bin"
    ),
    "another program's manifest": write("manifest.json", '{"files": ["x"]}'),
    "a text of its own": write("README.md", "mine"),
}


@pytest.fixture
def copy(tiny_bert, tmp_path, monkeypatch):
    """A copy of the tiny BERT in a working directory of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    shutil.copytree(tiny_bert, tmp_path / "model")
    yield tmp_path / "model"
    assert not (tmp_path / "code-was-run").exists()


def scores_of(folder):
    return Scorer(str(folder), device="cpu").score(QUERIES, DOCUMENTS)


@pytest.mark.parametrize(("damage", "reason"), REFUSED.values(), ids=REFUSED)
def test_neither_ranked_with_nor_trained_from(damage, reason, copy):
    damage(copy)
    with pytest.raises(HarpError) as refused:
        scores_of(copy)
    assert re.search(reason, str(refused.value)) and "\n" not in str(refused.value)
    with pytest.raises(HarpError) as refused:
        load_tokenizer(str(copy))
        TrainableCrossEncoder.load(str(copy))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("damage", HARMLESS.values(), ids=HARMLESS)
def test_scores_stay(damage, copy, tiny_bert):
    damage(copy)
    assert np.array_equal(scores_of(copy), scores_of(tiny_bert))


def test_weights_that_are_not_finite(copy):
    weights = load_file(copy / WEIGHTS)
    weights["bert.embeddings.LayerNorm.weight"].fill_(float("inf"))
    save_file(weights, copy / WEIGHTS, metadata={"format": "pt"})
    with pytest.raises(HarpError, match="gives nan for 2 of 2 pairs"):
        scores_of(copy)


def test_memory_error_is_no_damage(copy, monkeypatch):
    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr(AutoModelForSequenceClassification, "from_pretrained", fail)
    with pytest.raises(MemoryError):
        load_pretrained(AutoModelForSequenceClassification, str(copy))
