"""Damaged and lying model folders are refused in one line: no traceback, no wait, no code run."""

import json
import os
import pickle
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSequenceClassification

from harp_plugin.errors import HarpError, one_line
from harp_plugin.models import load_pretrained, load_tokenizer
from harp_plugin.ranking import Scorer
from harp_plugin.training.model import JointModel
from harp_plugin.weights.encoders import load_encoder

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
SECONDS = 10
QUERIES, DOCUMENTS = ["red apple", "green pear"], ["An apple is red.", "A pear is a fruit."]


def config(**changes):
    def damage(folder):
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return damage


def write(name, content):
    def damage(folder):
        data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
        (folder / name).write_bytes(data)

    return damage


def update(name, **changes):
    def damage(folder):
        path = folder / name
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return damage


def remove(*names):
    def damage(folder):
        for name in names:
            (folder / name).unlink()

    return damage


def tensors(change):
    def damage(folder):
        weights = load_file(folder / WEIGHTS)
        change(weights)
        save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})

    return damage


def header(change):
    """Rewrite the header of the weights as bytes."""

    def damage(folder):
        data = (folder / WEIGHTS).read_bytes()
        size = struct.unpack("<Q", data[:8])[0]
        text = change(data[8 : 8 + size])
        (folder / WEIGHTS).write_bytes(struct.pack("<Q", len(text)) + text + data[8 + size :])

    return damage


def in_json(change):
    def as_bytes(text):
        content = json.loads(text)
        change(content)
        return json.dumps(content).encode()

    return header(as_bytes)


def cut(name, share):
    def damage(folder):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: int(len(content) * share)])

    return damage


def instead(name, make):
    def damage(folder):
        (folder / name).unlink()
        make(folder / name)

    return damage


def both(*damages):
    def damage(folder):
        for each in damages:
            each(folder)

    return damage


class Hostile:
    """Unpickled, it writes a file in the working directory."""

    def __reduce__(self):
        return (Path.touch, (Path("code-was-run"),))


def pickled_weights(folder):
    (folder / WEIGHTS).unlink()
    torch.save(Hostile(), folder / "pytorch_model.bin")


def own_code(name, **entry):
    """Name a class of the folder's own Python file, which writes a file when it is imported."""

    def damage(folder):
        (folder / "own.py").write_text("open('code-was-run', 'w')\nclass Own: pass\n")
        update(name, **entry)(folder)

    return damage


def shards_of(weight_map):
    return both(
        lambda folder: (folder / WEIGHTS).rename(folder / "shard.safetensors"),
        write(INDEX, json.dumps({"metadata": {}, "weight_map": weight_map})),
    )


def nan(weights):
    weights["bert.embeddings.word_embeddings.weight"][7, 3] = float("nan")


def infinite(weights):
    weights["bert.embeddings.LayerNorm.weight"].fill_(float("inf"))


def narrow(weights):
    name = "bert.encoder.layer.0.attention.self.query.weight"
    weights[name] = weights[name][:16].clone()


def overlap(content):
    first, second = [name for name in content if name != "__metadata__"][:2]
    content[second]["data_offsets"] = content[first]["data_offsets"]


def fewer_words(folder):
    content = json.loads((folder / "tokenizer.json").read_text())
    vocabulary = content["model"]["vocab"]
    more = {f"word{number}": len(vocabulary) + number for number in range(50)}
    content["model"]["vocab"] = vocabulary | more
    (folder / "tokenizer.json").write_text(json.dumps(content))


AUTO_MAP = {"AutoConfig": "own.Own", "AutoModelForSequenceClassification": "own.Own"}
DEEP = "[" * 100_000 + "]" * 100_000
HUGE = "9" * 10_000
CODE = {
    "own tokenizer": own_code(
        "tokenizer_config.json",
        tokenizer_class="Own",
        auto_map={"AutoTokenizer": ["own.Own", "own.Own"]},
    ),
    "own model class": own_code("config.json", model_type="own", auto_map=AUTO_MAP),
    "pickled weights": pickled_weights,
    "weights are a pickle": write(WEIGHTS, pickle.dumps(Hostile())),
    "adapter": write(
        "adapter_config.json", json.dumps({"base_model_name_or_path": "x", "peft_type": "LORA"})
    ),
    "kernel of the hub": config(attn_implementation="someone/kernel"),
    "kernel of the hub, in another key": config(_attn_implementation="someone/kernel"),
}
REFUSED = CODE | {
    "config is a list": write("config.json", "[]"),
    "config is null": write("config.json", "null"),
    "config is a string": write("config.json", '"x"'),
    "config is empty": write("config.json", ""),
    "config is not UTF-8": write("config.json", b"\xff\xfe\x00{"),
    "config is deep": write("config.json", DEEP),
    "config has a huge number": write("config.json", '{"hidden_size": ' + HUGE + "}"),
    "config is a folder": instead("config.json", Path.mkdir),
    "config is a pipe": instead("config.json", os.mkfifo),
    "config is a loop of links": instead("config.json", lambda path: path.symlink_to(path)),
    "config is a device": instead("config.json", lambda path: path.symlink_to("/dev/zero")),
    "config is cut off": cut("config.json", 0.5),
    "config without a type": write("config.json", "{}"),
    "unknown type": config(model_type="no-such-model"),
    "type is a number": config(model_type=7),
    "no heads": config(num_attention_heads=0),
    "heads do not divide": config(num_attention_heads=3),
    "negative heads": config(num_attention_heads=-2),
    "unknown activation": config(hidden_act="no-such-activation"),
    "activation is a list": config(hidden_act=["gelu"]),
    "a billion layers": config(num_hidden_layers=10**9),
    "infinitely many layers": config(num_hidden_layers=float("inf")),
    "a thousand layers": config(num_hidden_layers=1000),
    "150 layers": config(num_hidden_layers=150),
    "no layers": config(num_hidden_layers=0),
    "negative layers": config(num_hidden_layers=-1),
    "one layer less": config(num_hidden_layers=1),
    "one layer more": config(num_hidden_layers=3),
    "layers are a string": config(num_hidden_layers="2"),
    "hidden size of a billion": config(hidden_size=10**9),
    "hidden size beyond 64 bits": config(hidden_size=2**70),
    "negative hidden size": config(hidden_size=-32),
    "hidden size is null": config(hidden_size=None),
    "other hidden size": config(hidden_size=64),
    "other intermediate size": config(intermediate_size=32),
    "intermediate size of a billion": config(intermediate_size=10**9),
    "no positions": config(max_position_embeddings=0),
    "a billion positions": config(max_position_embeddings=10**9),
    "vocabulary too small": config(vocab_size=100),
    "a billion words": config(vocab_size=10**9),
    "a billion labels": config(num_labels=10**9),
    "labels are a list": config(id2label=["a"]),
    "label ids are words": config(id2label={"x": "y"}),
    "quantised": config(quantization_config={"quant_method": "bitsandbytes", "load_in_8bit": True}),
    "quantised by nobody": config(quantization_config={"quant_method": "no-such-method"}),
    "unknown attention": config(attn_implementation="no-such-attention"),
    "NaN weights": tensors(nan),
    "infinite weights": tensors(infinite),
    "weights of another shape": tensors(narrow),
    "weights of no tensors": tensors(dict.clear),
    "a base weight is missing": tensors(
        lambda weights: weights.pop("bert.encoder.layer.0.output.dense.weight")
    ),
    "weights are missing": remove(WEIGHTS),
    "weights are empty": write(WEIGHTS, b""),
    "weights are cut off": cut(WEIGHTS, 0.5),
    "weights have a cut header": cut(WEIGHTS, 0.0001),
    "weights have more bytes": lambda folder: (folder / WEIGHTS).write_bytes(
        (folder / WEIGHTS).read_bytes() + b"more"
    ),
    "weights are a folder": instead(WEIGHTS, Path.mkdir),
    "weights are a pipe": instead(WEIGHTS, os.mkfifo),
    "header of 2**60 bytes": write(WEIGHTS, struct.pack("<Q", 2**60) + b"{}"),
    "header is no JSON": header(lambda text: b"\x00" * len(text)),
    "header is deep": header(lambda text: DEEP.encode()),
    "tensors overlap": in_json(overlap),
    "a tensor twice": header(lambda text: text[:-1].rstrip(b" }") + b"}," + text[1:]),
    "unknown type of numbers": header(lambda text: text.replace(b'"F32"', b'"X32"', 1)),
    "index is no JSON": both(remove(WEIGHTS), write(INDEX, "{")),
    "index is a list": both(remove(WEIGHTS), write(INDEX, "[]")),
    "index of nothing": both(remove(WEIGHTS), write(INDEX, '{"weight_map": {}}')),
    "index of numbers": shards_of({"classifier.weight": 7}),
    "index names a file elsewhere": shards_of({"classifier.weight": "../../x.safetensors"}),
    "index names an absolute file": shards_of({"classifier.weight": "/etc/passwd"}),
    "index names a missing shard": shards_of({"classifier.weight": "2.safetensors"}),
    "tokenizer is missing": remove("tokenizer.json", "tokenizer_config.json"),
    "vocabulary is missing": remove("tokenizer.json"),
    "tokenizer is a list": write("tokenizer.json", "[]"),
    "tokenizer is garbage": write("tokenizer.json", "garbage"),
    "tokenizer is deep": write("tokenizer.json", DEEP),
    "tokenizer is cut off": cut("tokenizer.json", 0.5),
    "tokenizer is a pipe": instead("tokenizer.json", os.mkfifo),
    "tokenizer has more words": fewer_words,
    "tokenizer settings are null": write("tokenizer_config.json", "null"),
    "tokenizer settings are a list": write("tokenizer_config.json", "[]"),
    "tokenizer settings are a pipe": instead("tokenizer_config.json", os.mkfifo),
    "unknown class of tokenizer": update("tokenizer_config.json", tokenizer_class="NoSuch"),
    "class of tokenizer is a number": update("tokenizer_config.json", tokenizer_class=7),
    "no tokens fit": update("tokenizer_config.json", model_max_length=0),
    "number of tokens is a word": update("tokenizer_config.json", model_max_length="many"),
    "vocab.txt is not UTF-8": both(remove("tokenizer.json"), write("vocab.txt", b"\xff\xfe\xfd")),
    "vocab.txt is empty": both(remove("tokenizer.json"), write("vocab.txt", "")),
    "manifest is a list": write("harp_manifest.json", "[]"),
    "manifest is empty": write("harp_manifest.json", "{}"),
}
HARMLESS = {
    "entries that nothing reads": config(note="\ud800", more={"x": [1]}),
    "code that nothing asks for": write("own.py", "open('code-was-run', 'w')"),
    "code beside a known class": own_code("config.json", auto_map=AUTO_MAP),
    "a pickle beside the weights": lambda folder: torch.save(
        Hostile(), folder / "pytorch_model.bin"
    ),
    "another type of numbers": config(dtype="bfloat16"),
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


@pytest.mark.parametrize("damage", REFUSED.values(), ids=REFUSED)
def test_no_reranker(damage, copy):
    damage(copy)
    start = time.monotonic()
    with pytest.raises(HarpError) as refused:
        scores_of(copy)
    assert time.monotonic() - start < SECONDS
    assert "\n" not in one_line(refused.value) and "model" in str(refused.value)


@pytest.mark.parametrize("damage", HARMLESS.values(), ids=HARMLESS)
def test_scores_stay(damage, copy, tiny_bert):
    damage(copy)
    assert np.array_equal(scores_of(copy), scores_of(tiny_bert))


@pytest.mark.parametrize("damage", REFUSED.values(), ids=REFUSED)
def test_nothing_to_train_from(damage, copy):
    damage(copy)
    start = time.monotonic()
    with pytest.raises(HarpError):
        load_tokenizer(str(copy))
        JointModel.load(str(copy))
    assert time.monotonic() - start < SECONDS


@pytest.mark.parametrize("damage", REFUSED.values(), ids=REFUSED)
def test_no_encoder(damage, copy):
    damage(copy)
    start = time.monotonic()
    with pytest.raises(HarpError):
        load_tokenizer(str(copy))
        load_encoder(str(copy), torch.device("cpu"), torch.float32)
    assert time.monotonic() - start < SECONDS


def test_shards_are_read(copy, tiny_bert):
    names = dict.fromkeys(load_file(copy / WEIGHTS), "shard.safetensors")
    shards_of(names)(copy)
    assert np.array_equal(scores_of(copy), scores_of(tiny_bert))


def test_memory_error_is_no_damage(copy, monkeypatch):
    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr(AutoModelForSequenceClassification, "from_pretrained", fail)
    with pytest.raises(MemoryError):
        load_pretrained(AutoModelForSequenceClassification, str(copy))


@pytest.mark.integration
@pytest.mark.parametrize(
    "name", ["own model class", "own tokenizer", "config is null", "NaN weights"]
)
def test_command_lines(name, copy, tmp_path):
    REFUSED[name](copy)
    (tmp_path / "recipe.json").write_text(
        json.dumps({"model_name_or_path": str(copy), "train_file": ["lines.jsonl"]})
    )
    passages = [{"docid": "1", "title": "", "text": "An apple."}]
    line = {"query_id": "1", "query": "apple", "positive_passages": passages}
    others = [{"docid": "2", "title": "", "text": "A pear."}]
    (tmp_path / "lines.jsonl").write_text(json.dumps(line | {"negative_passages": others}) + "\n")
    started = subprocess.run(
        [
            *(sys.executable, "-m", "harp_plugin.cli", "finetune", "recipe.json"),
            *("--output_dir", "out", "--per_device_train_batch_size", "1", "--use_cpu"),
        ],
        input="y\n" * 100,
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert started.returncode == 2, started.stderr
    assert "Traceback" not in started.stderr
    assert started.stderr.strip().splitlines()[-1].startswith("harp: error: ")
