"""Damaged and lying model folders are refused in one line: no traceback, no wait, no code run."""

import json
import os
import pickle
import re
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

from harp_plugin.errors import HarpError
from harp_plugin.models.cross_encoder import TrainableCrossEncoder
from harp_plugin.models.loading import load_pretrained, load_tokenizer
from harp_plugin.ranking import Scorer
from harp_plugin.weights.encoders import load_encoder
from harp_plugin.work.records import write_record

pytestmark = pytest.mark.integration

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


def old_buffer(weights):
    weights["bert.encoder.layer.0.attention.rotary_emb.inv_freq"] = torch.ones(4)


def large(weights):
    weights["bert.embeddings.LayerNorm.weight"].fill_(1e5)


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
    "own tokenizer": (
        own_code(
            "tokenizer_config.json",
            tokenizer_class="Own",
            auto_map={"AutoTokenizer": ["own.Own", "own.Own"]},
        ),
        "has no class 'Own'",
    ),
    "own model class": (
        own_code("config.json", model_type="own", auto_map=AUTO_MAP),
        "contains custom code",
    ),
    "pickled weights": (pickled_weights, "pickled weights can run code"),
    "weights are a pickle": (
        write(WEIGHTS, pickle.dumps(Hostile())),
        r"damaged model.safetensors: .*header",
    ),
    "adapter": (
        write(
            "adapter_config.json", json.dumps({"base_model_name_or_path": "x", "peft_type": "LORA"})
        ),
        "holds an adapter",
    ),
    "kernel of the hub": (
        config(attn_implementation="someone/kernel"),
        r"attn_implementation .*not part of its package",
    ),
    "kernel of the hub, in another key": (
        config(_attn_implementation="someone/kernel"),
        r"attn_implementation .*not part of its package",
    ),
}
REFUSED = CODE | {
    "config is a list": (write("config.json", "[]"), "config.json is not a JSON object"),
    "config is null": (write("config.json", "null"), "config.json is not a JSON object"),
    "config is a string": (write("config.json", '"x"'), "config.json is not a JSON object"),
    "config is empty": (write("config.json", ""), "damaged config.json: JSONDecodeError"),
    "config is not UTF-8": (
        write("config.json", b"\xff\xfe\x00{"),
        "damaged config.json: JSONDecodeError",
    ),
    "config is deep": (write("config.json", DEEP), "damaged config.json: RecursionError"),
    "config has a huge number": (
        write("config.json", '{"hidden_size": ' + HUGE + "}"),
        "damaged config.json: ValueError",
    ),
    "config is a folder": (instead("config.json", Path.mkdir), "it has no config.json"),
    "config is a pipe": (instead("config.json", os.mkfifo), "it has no config.json"),
    "config is a loop of links": (
        instead("config.json", lambda path: path.symlink_to(path)),
        "it has no config.json",
    ),
    "config is a device": (
        instead("config.json", lambda path: path.symlink_to("/dev/zero")),
        "it has no config.json",
    ),
    "config is cut off": (cut("config.json", 0.5), "damaged config.json: JSONDecodeError"),
    "config without a type": (write("config.json", "{}"), "model_type"),
    "unknown type": (config(model_type="no-such-model"), "does not recognize"),
    "type is a number": (config(model_type=7), "does not recognize"),
    "no heads": (config(num_attention_heads=0), "modulo by zero"),
    "heads do not divide": (config(num_attention_heads=3), "not a multiple"),
    "negative heads": (
        config(num_attention_heads=-2),
        r"num_attention_heads is .*, which is not possible",
    ),
    "unknown activation": (config(hidden_act="no-such-activation"), "no-such-activation"),
    "activation is a list": (config(hidden_act=["gelu"]), "'hidden_act' expected str"),
    "a billion layers": (
        config(num_hidden_layers=10**9),
        r"num_hidden_layers is .*, which is not possible",
    ),
    "infinitely many layers": (
        config(num_hidden_layers=float("inf")),
        r"num_hidden_layers is .*, which is not possible",
    ),
    "a thousand layers": (
        config(num_hidden_layers=1000),
        r"num_hidden_layers is .*, which is not possible",
    ),
    "150 layers": (config(num_hidden_layers=150), "no trained weights for bert.encoder"),
    "no layers": (config(num_hidden_layers=0), "config.json has no layer"),
    "negative layers": (
        config(num_hidden_layers=-1),
        r"num_hidden_layers is .*, which is not possible",
    ),
    "one layer less": (config(num_hidden_layers=1), "config.json has no layer"),
    "one layer more": (config(num_hidden_layers=3), "no trained weights for bert.encoder"),
    "layers are a string": (config(num_hidden_layers="2"), "'num_hidden_layers' expected int"),
    "hidden size of a billion": (
        config(hidden_size=10**9),
        r"hidden_size is .*, which is not possible",
    ),
    "hidden size beyond 64 bits": (
        config(hidden_size=2**70),
        r"hidden_size is .*, which is not possible",
    ),
    "negative hidden size": (config(hidden_size=-32), r"hidden_size is .*, which is not possible"),
    "hidden size is null": (config(hidden_size=None), "'hidden_size' expected int"),
    "other hidden size": (config(hidden_size=64), "ignore_mismatched_sizes"),
    "other intermediate size": (config(intermediate_size=32), "ignore_mismatched_sizes"),
    "intermediate size of a billion": (
        config(intermediate_size=10**9),
        r"intermediate_size is .*, which is not possible",
    ),
    "no positions": (config(max_position_embeddings=0), "ignore_mismatched_sizes"),
    "a billion positions": (
        config(max_position_embeddings=10**9),
        r"max_position_embeddings is .*, which is not possible",
    ),
    "vocabulary too small": (config(vocab_size=100), "largest token is 30521"),
    "a billion words": (config(vocab_size=10**9), r"vocab_size is .*, which is not possible"),
    "a billion labels": (config(num_labels=10**9), r"num_labels is .*, which is not possible"),
    "labels are a list": (config(id2label=["a"]), "'list' object"),
    "label ids are words": (config(id2label={"x": "y"}), "invalid literal for int"),
    "quantized": (
        config(quantization_config={"quant_method": "bitsandbytes", "load_in_8bit": True}),
        "are quantized",
    ),
    "quantized by nobody": (
        config(quantization_config={"quant_method": "no-such-method"}),
        "are quantized",
    ),
    "unknown attention": (
        config(attn_implementation="no-such-attention"),
        r"attn_implementation .*not part of its package",
    ),
    "NaN weights": (tensors(nan), "are not all finite"),
    "infinite weights": (tensors(infinite), "are not all finite"),
    "weights of another shape": (tensors(narrow), "ignore_mismatched_sizes"),
    "weights of no tensors": (tensors(dict.clear), "no trained weights for bert.embeddings"),
    "a base weight is missing": (
        tensors(lambda weights: weights.pop("bert.encoder.layer.0.output.dense.weight")),
        "no trained weights for bert.encoder",
    ),
    "weights are missing": (remove(WEIGHTS), "it has no weights"),
    "weights are empty": (write(WEIGHTS, b""), r"damaged model.safetensors: .*header"),
    "weights are cut off": (cut(WEIGHTS, 0.5), r"damaged model.safetensors: .*not fully covered"),
    "weights have a cut header": (cut(WEIGHTS, 0.0001), r"damaged model.safetensors: .*header"),
    "weights have more bytes": (
        lambda folder: (folder / WEIGHTS).write_bytes((folder / WEIGHTS).read_bytes() + b"more"),
        r"damaged model.safetensors: .*not fully covered",
    ),
    "weights are a folder": (instead(WEIGHTS, Path.mkdir), "is not a regular file"),
    "weights are a pipe": (instead(WEIGHTS, os.mkfifo), "is not a regular file"),
    "header of 2**60 bytes": (
        write(WEIGHTS, struct.pack("<Q", 2**60) + b"{}"),
        r"damaged model.safetensors: .*header",
    ),
    "header is no JSON": (
        header(lambda text: b"\x00" * len(text)),
        r"damaged model.safetensors: .*header",
    ),
    "header is deep": (header(lambda text: DEEP.encode()), r"damaged model.safetensors: .*header"),
    "tensors overlap": (in_json(overlap), r"damaged model.safetensors: .*invalid offset"),
    "a tensor twice": (
        header(lambda text: text[:-1].rstrip(b" }") + b"}," + text[1:]),
        r"damaged model.safetensors: .*header",
    ),
    "unknown type of numbers": (
        header(lambda text: text.replace(b'"F32"', b'"X32"', 1)),
        r"damaged model.safetensors: .*header",
    ),
    "index is no JSON": (
        both(remove(WEIGHTS), write(INDEX, "{")),
        r"damaged .*index.json: JSONDecodeError",
    ),
    "index is a list": (
        both(remove(WEIGHTS), write(INDEX, "[]")),
        r"damaged .*index.json: TypeError",
    ),
    "index of nothing": (
        both(remove(WEIGHTS), write(INDEX, '{"weight_map": {}}')),
        r"cannot load model .*'metadata'",
    ),
    "index of numbers": (shards_of({"classifier.weight": 7}), r"damaged .*index.json: TypeError"),
    "index names a file elsewhere": (
        shards_of({"classifier.weight": "../../x.safetensors"}),
        "is not a file of weights in this folder",
    ),
    "index names an absolute file": (
        shards_of({"classifier.weight": "/etc/passwd"}),
        "is not a file of weights in this folder",
    ),
    "index names a missing shard": (
        shards_of({"classifier.weight": "2.safetensors"}),
        "is not a file of weights in this folder",
    ),
    "tokenizer is missing": (
        remove("tokenizer.json", "tokenizer_config.json"),
        "no tokenizer.json and no vocabulary",
    ),
    "vocabulary is missing": (remove("tokenizer.json"), "no tokenizer.json and no vocabulary"),
    "tokenizer is a list": (write("tokenizer.json", "[]"), "cannot be interpreted"),
    "tokenizer is garbage": (write("tokenizer.json", "garbage"), "Expecting value"),
    "tokenizer is deep": (write("tokenizer.json", DEEP), "maximum recursion depth"),
    "tokenizer is cut off": (cut("tokenizer.json", 0.5), "Expecting ':' delimiter"),
    "tokenizer is a pipe": (instead("tokenizer.json", os.mkfifo), "is not a regular file"),
    "tokenizer has more words": (fewer_words, "largest token is 30571"),
    "tokenizer settings are null": (write("tokenizer_config.json", "null"), "'NoneType' object"),
    "tokenizer settings are a list": (write("tokenizer_config.json", "[]"), "'list' object"),
    "tokenizer settings are a pipe": (
        instead("tokenizer_config.json", os.mkfifo),
        "is not a regular file",
    ),
    "unknown class of tokenizer": (
        update("tokenizer_config.json", tokenizer_class="NoSuch"),
        "has no class 'NoSuch'",
    ),
    "class of tokenizer is a number": (
        update("tokenizer_config.json", tokenizer_class=7),
        "'int' object",
    ),
    "no tokens fit": (update("tokenizer_config.json", model_max_length=0), "model_max_length is 0"),
    "number of tokens is a word": (
        update("tokenizer_config.json", model_max_length="many"),
        "model_max_length is many",
    ),
    "vocab.txt is not UTF-8": (
        both(remove("tokenizer.json"), write("vocab.txt", b"\xff\xfe\xfd")),
        "valid UTF-8",
    ),
    "vocab.txt is empty": (
        both(remove("tokenizer.json"), write("vocab.txt", "")),
        "vocabulary is empty",
    ),
    "manifest is a list": (write("harp_manifest.json", "[]"), "harp_manifest.json is damaged"),
    "manifest is empty": (write("harp_manifest.json", "{}"), "harp_manifest.json is damaged"),
}
HARMLESS = {
    "large numbers of a log": config(num_params=110_000_000, num_train_steps=400_000),
    "odd numbers of a log": config(train_batch_size=-1, steps=1_700_000_000),
    "a buffer of an older release": tensors(old_buffer),
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


@pytest.mark.parametrize(("damage", "reason"), REFUSED.values(), ids=REFUSED)
def test_no_reranker(damage, reason, copy):
    damage(copy)
    start = time.monotonic()
    with pytest.raises(HarpError) as refused:
        scores_of(copy)
    assert time.monotonic() - start < SECONDS
    assert re.search(reason, str(refused.value)) and "\n" not in str(refused.value)


@pytest.mark.parametrize("damage", HARMLESS.values(), ids=HARMLESS)
def test_scores_stay(damage, copy, tiny_bert):
    damage(copy)
    assert np.array_equal(scores_of(copy), scores_of(tiny_bert))


@pytest.mark.parametrize("damage", [damage for damage, _ in REFUSED.values()], ids=REFUSED)
def test_nothing_to_train_from(damage, copy):
    damage(copy)
    start = time.monotonic()
    with pytest.raises(HarpError):
        load_tokenizer(str(copy))
        TrainableCrossEncoder.load(str(copy))
    assert time.monotonic() - start < SECONDS


@pytest.mark.parametrize("damage", [damage for damage, _ in REFUSED.values()], ids=REFUSED)
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


def test_weights_too_large_for_float16(copy):
    tensors(large)(copy)
    with pytest.raises(HarpError, match="are too large for float16: choose float32 or bfloat16"):
        load_pretrained(AutoModelForSequenceClassification, str(copy), dtype=torch.float16)
    load_pretrained(AutoModelForSequenceClassification, str(copy), dtype=torch.bfloat16)
    tensors(infinite)(copy)
    with pytest.raises(HarpError, match="are not all finite"):
        load_pretrained(AutoModelForSequenceClassification, str(copy), dtype=torch.float16)


@pytest.mark.parametrize(
    "name", ["check_model_folder", "_check_layers", "_not_finite", "_folder_fault", "shapes_of"]
)
def test_errors_of_ours_keep_their_traceback(name, copy, monkeypatch):
    def fail(*_, **__):
        raise KeyError("ours")

    monkeypatch.setattr(f"harp_plugin.models.loading.{name}", fail)
    with pytest.raises(KeyError, match="ours"):
        scores_of(copy)


@pytest.mark.parametrize("files", [{"config.json": 7}, {"config.json": {}}])
def test_manifest_with_odd_entries(files, copy):
    write_record(copy / "harp_manifest.json", {"files": files})
    with pytest.raises(HarpError, match=r"harp_manifest.json lists no files"):
        load_tokenizer(str(copy))


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
    REFUSED[name][0](copy)
    (tmp_path / "recipe.json").write_text(
        json.dumps({"model": str(copy), "train_file": ["lines.jsonl"]})
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
