"""Tevatron's options of a training, on a build."""

import json
import re
import runpy
import sys

import pytest

from harp_plugin.errors import HarpError
from harp_plugin.models.bi_encoder import BiEncoderBatches
from harp_plugin.models.pairs import TextTemplate
from harp_plugin.options_parser import OptionsParser
from harp_plugin.tevatron.names import harp_arguments, run
from harp_plugin.training.arguments import PRETRAINING
from harp_plugin.training.tevatron import IS_MAIN

QUERY, PASSAGE, GROUP = (
    ("query_max_len", "passage_max_len", "train_group_size")
    if IS_MAIN
    else ("q_max_len", "p_max_len", "train_n_passages")
)
RETRIEVER = {
    "model_name_or_path": "bert-base-uncased",
    "dataset_name": "harp:some/where",
    "dataset_config": "anchor,ict",
    "output_dir": "out",
    QUERY: 24,
    PASSAGE: 100,
    GROUP: 5,
    "per_device_train_batch_size": 16,
    "learning_rate": 2e-5,
    "max_steps": 7,
    "logging_steps": 2,
    "use_cpu": True,
    "negatives": "bm25",
}


def parsed(kind, argv):
    model, data, training, _ = OptionsParser(PRETRAINING, "harp train", "").read(
        harp_arguments(kind, argv)
    )
    return model, data, training


def flags(options):
    return [str(part) for name, value in options.items() for part in (f"--{name}", value)]


@pytest.mark.parametrize("as_file", [False, True])
def test_the_retrievers_options(tmp_path, as_file):
    path = tmp_path / "tevatron.json"
    path.write_text(json.dumps(RETRIEVER))
    model, data, training = parsed("bi-encoder", [str(path)] if as_file else flags(RETRIEVER))
    assert (model.model, model.model_kind) == ("bert-base-uncased", "bi-encoder")
    assert (model.pooling, model.normalize) == ("cls", False)
    assert (data.build_dir, data.tasks) == ("some/where", {"anchor": 1, "ict": 1})
    assert data.losses == {"contrastive": {"temperature": 1.0}}
    assert (data.max_query_length, data.max_length, data.negatives_per_group) == (22, 100, 4)
    assert data.negatives == "bm25"
    assert (training.per_device_train_batch_size, training.max_steps) == (16, 7)
    assert (training.learning_rate, training.output_dir) == (2e-5, "out")


def test_a_querys_length_is_tevatrons(tokenizer):
    """A query of 24 tokens with [CLS] and [SEP], as Tevatron's tokenizer cuts it."""
    _, data, _ = parsed("bi-encoder", flags(RETRIEVER))
    batches = BiEncoderBatches(tokenizer, TextTemplate.from_tokenizer(tokenizer), 100, ("", ""))
    batch = batches([("word " * 60, "text")], [data.max_query_length], None)
    theirs = tokenizer("word " * 60, truncation=True, max_length=RETRIEVER[QUERY])["input_ids"]
    assert batch["input_ids"][: batch["lengths"][0]].tolist() == theirs


def test_losses_of_ones_own():
    given = flags(RETRIEVER | {"losses": '{"contrastive": {"temperature": 0.02}, "mlm": 1}'})
    _, data, _ = parsed("bi-encoder", given)
    assert data.losses == {"contrastive": {"temperature": 0.02}, "mlm": 1}


def test_the_rerankers_options():
    given = {"model_name_or_path": "m", "dataset_name": "harp:/build", "output_dir": "out"}
    model, data, _ = parsed("cross-encoder", [*flags(given), "--use_cpu", "--max_length", "90"])
    assert (model.model, model.model_kind, model.pooling) == ("m", "cross-encoder", None)
    assert data.build_dir == "/build" and data.max_length == 90
    assert data.losses == {"hinge": 1, "mlm": 1} and set(data.tasks) == {"rqp", "qdm", "rdp", "acm"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dataset_name": "Tevatron/msmarco-passage"}, r"--dataset_name .*: write harp:BUILD"),
        ({"negative_passage_no_shuffle": True}, "negative_passage_no_shuffle has no meaning"),
    ],
)
def test_what_is_for_other_data_is_refused(change, message, capsys):
    given = flags(RETRIEVER | change)
    with pytest.raises(HarpError, match=message):
        harp_arguments("bi-encoder", given)
    assert run("bi-encoder", given) == 2
    assert capsys.readouterr().err.startswith("harp: error: --")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "required: --model_name_or_path"),
        (flags(RETRIEVER | {QUERY: "many"}), "many"),
        (["no/such.json"], r"no recipe no/such\.json"),
    ],
)
def test_what_is_wrong_is_one_line(argv, message, capsys):
    assert run("bi-encoder", argv) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("harp: error: ") and re.search(message, line)


def test_a_value_that_is_tevatrons_own_default_changes_nothing():
    given = RETRIEVER | {"negative_passage_no_shuffle": False}
    assert harp_arguments("bi-encoder", flags(given)) == harp_arguments(
        "bi-encoder", flags(RETRIEVER)
    )


@pytest.mark.integration
@pytest.mark.parametrize("module", ["train_reranker", "train_retriever"])
def test_ten_steps(module, encyclopedia_build, tiny_bert, tmp_path, monkeypatch):
    given = {
        "model_name_or_path": tiny_bert,
        "dataset_name": f"harp:{encyclopedia_build}",
        "dataset_config": "rqp,acm",
        "output_dir": tmp_path / "out",
        "max_steps": 10,
        "per_device_train_batch_size": 4,
        "max_length": 40,
    }
    monkeypatch.setattr(sys, "argv", [module, *map(str, flags(given)), "--use_cpu", "--quiet"])
    with pytest.raises(SystemExit) as end:
        runpy.run_module(f"harp_plugin.tevatron.{module}", run_name="__main__")
    assert end.value.code == 0
    log = json.loads((tmp_path / "out" / "training_log.json").read_text())
    assert log[-1]["step"] == 10
    assert (tmp_path / "out" / "model.safetensors").is_file()
