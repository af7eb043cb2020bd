"""Wrong recipes through the front door: one clear line, before costly work or with the example."""

import contextlib
import gc
import json
import os
import re
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.multiprocessing import spawn
from transformers import (
    AutoTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    T5Config,
    T5ForConditionalGeneration,
)

from harp_plugin.cli import main
from harp_plugin.models.cross_encoder import TrainableCrossEncoder
from harp_plugin.tasks import HARP_TASKS, PreTrainingData
from harp_plugin.training.callbacks import StopAtNonFinite
from harp_plugin.training.data import EpochSampler

from .test_processes import free_port

pytestmark = pytest.mark.integration

WEIGHTS = "model.safetensors"
LARGEST = torch.finfo(torch.float32).max


@pytest.fixture
def recipe(tiny_bert, encyclopedia_build, tmp_path):
    """Writes a recipe of six steps on the encyclopedia, changed as asked."""

    def write(**changes):
        options = {
            "model": str(tiny_bert),
            "build_dir": str(encyclopedia_build),
            "output_dir": str(tmp_path / "out"),
            "losses": {"hinge": 1},
            "max_length": 48,
            "per_device_train_batch_size": 4,
            "max_steps": 6,
            "logging_steps": 6,
            "save_strategy": "no",
            "use_cpu": True,
            "disable_tqdm": True,
            **changes,
        }
        path = tmp_path / "recipe.json"
        path.write_text(json.dumps({k: v for k, v in options.items() if v is not None}))
        return str(path)

    return write


def error_of(capsys, command, path):
    """The one line that a command ends in."""
    assert main([command, path]) == 2
    line = capsys.readouterr().err
    assert line.startswith("harp: error: ") and line.count("\n") == 1
    return line


def damaged(model, folder, change):
    """A copy of a model whose weights' file is changed."""
    shutil.copytree(model, folder)
    change(folder / WEIGHTS)
    return str(folder)


def cut(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def without_a_word(tokenizer, *words):
    """Makes the embedding of words so large that the next layer gives no number."""

    def change(path):
        weights = load_file(path)
        rows = tokenizer.convert_tokens_to_ids(list(words))
        assert tokenizer.unk_token_id not in rows
        embeddings = weights["bert.embeddings.word_embeddings.weight"]
        embeddings[rows] = LARGEST
        embeddings[rows, ::2] = -LARGEST
        save_file(weights, path, metadata={"format": "pt"})

    return change


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"losses": {"hing": 1}}, "unknown loss 'hing': did you mean 'hinge'?"),
        ({"losses": {"hinge": -1}}, "losses: 'hinge' has weight -1"),
        ({"losses": {}}, "losses is empty"),
        ({"losses": {"hinge": 1, "kl": 1}}, "'kl' reads a teacher's scores: give a teacher"),
        ({"losses": {"hinge": 1}, "teacher": "x"}, "teacher is read by no loss: add kl or"),
        ({"losses": {"kl": 1}, "teacher": "./x"}, "no model at ./x"),
        ({"tasks": {"rpq": 1}}, "unknown task 'rpq': did you mean 'rqp'?"),
        ({"tasks": {"rqp": -2}}, "tasks: 'rqp' has weight -2"),
        (
            {"tasks": {"rqp": 1, "srr": 1}},
            "built without srr: take --tasks rqp qdm rdp acm, or run",
        ),
        ({"build_dir": "nothing-here"}, "nothing-here"),
        ({"mlm_probability": 2, "losses": {"mlm": 1}}, "mlm_probability is 2"),
        ({"max_length": 600}, "reads at most 512 tokens: lower it"),
        ({"per_device_train_batch_size": 10**6}, "are fewer than one batch of 1000000"),
        ({"model": "no/such/folder"}, "no model at no/such/folder"),
        ({"eval_strategy": "steps"}, "nothing to evaluate"),
    ],
)
def test_recipes(changes, message, recipe, tmp_path, capsys):
    assert message in error_of(capsys, "train", recipe(**changes))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (
            lambda size: GPT2LMHeadModel(
                GPT2Config(vocab_size=size, n_embd=8, n_layer=1, n_head=2)
            ),
            "GPT2",
        ),
        (
            lambda size: T5ForConditionalGeneration(
                T5Config(vocab_size=size, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
            ),
            "T5",
        ),
    ],
    ids=["decoder", "t5"],
)
def test_models_without_a_masked_language_model(model, name, recipe, tiny_bert, tmp_path, capsys):
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    model(len(tokenizer)).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    capsys.readouterr()
    line = error_of(capsys, "train", recipe(model=str(tmp_path / "model")))
    assert f"{name} has no AutoModelForMaskedLM, with which cross-encoders are trained" in line
    assert not (tmp_path / "out").exists()


def test_damaged_model_to_start_from(recipe, tiny_bert, tmp_path, capsys):
    model = damaged(tiny_bert, tmp_path / "model", cut)
    line = error_of(capsys, "train", recipe(model=model))
    assert f"cannot load model {model}" in line
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["train", "finetune"])
def test_folder_of_someone_else(command, recipe, tmp_path, capsys):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("draft")
    path = recipe()
    if command == "finetune":
        path = of_lines(recipe, tmp_path, ["this", "that"])
    line = error_of(capsys, command, path)
    assert f"{tmp_path / 'out'} holds 1 files that harp did not write, such as thesis.txt" in line
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["thesis.txt"]


def test_pre_training_names_the_first_example_that_is_no_number(
    recipe, tiny_bert, encyclopedia_build, tmp_path, capsys
):
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    data = PreTrainingData(encyclopedia_build, dict.fromkeys(sorted(HARP_TASKS), 1))
    order = list(EpochSampler(len(data), 42))[:12]

    def read(index):
        """The tokens of a group that the model reads."""
        pairs = [
            (tokenizer.tokenize(pair.query)[:24], tokenizer.tokenize(pair.document))
            for pair in data.group(0, index).members
        ]
        return {token for query, document in pairs for token in (query + document)[: 48 - 3]}

    known = set().union(*(read(index) for index in order[:8]))
    word = min(token for token in read(order[9]) - known if token.isalpha() and len(token) > 3)
    bad = [index for index in order[8:] if word in read(index)]
    assert 0 < len(bad) < 4
    model = damaged(tiny_bert, tmp_path / "model", without_a_word(tokenizer, word))
    line = error_of(capsys, "train", recipe(model=model))
    group = data.group(0, bad[0])
    query = " ".join(group.positive.query.split())[:60]
    assert (
        f"the loss is not finite at step 3, for {len(bad)} of 4 groups of a batch: the first is "
        f"{group.task}, epoch 0, index {bad[0]}, {query!r}; the other losses are finite"
    ) in line
    assert not (tmp_path / "out" / "manifest.json").exists()


def of_lines(recipe, tmp_path, words, **changes):
    """A recipe on Tevatron's lines, one for each word, which stands in one of its passages."""
    rows = [
        {
            "query_id": f"q{number}",
            "query": f"what is number {number}",
            "positive_passages": [{"title": "", "text": "an answer"}],
            "negative_passages": [{"title": "", "text": f"no answer but {word}"}],
        }
        for number, word in enumerate(words)
    ]
    file = tmp_path / "lines.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = {"build_dir": None, "train_file": [str(file)], "per_device_train_batch_size": 2}
    return recipe(**given | changes)


NAMED = (
    "at step 3, for 1 of 2 groups of a batch: the first is finetune, epoch 0, index {0}, "
    "query q{0}, 'what is number {0}'; the other losses are finite: check the texts"
)


def test_fine_tuning_names_the_query(recipe, tiny_bert, tmp_path, capsys):
    number = list(EpochSampler(12, 42))[5]
    words = ["mountain" if place == number else "river" for place in range(12)]
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    model = damaged(tiny_bert, tmp_path / "model", without_a_word(tokenizer, "mountain"))
    path = of_lines(recipe, tmp_path, words, model=model, losses={"lce": 1})
    assert NAMED.format(number) in error_of(capsys, "finetune", path)


@pytest.mark.parametrize("losses", [{"mlm": 1}, {"lce": 1, "mlm": 1}])
def test_a_masked_token_names_its_query(losses, recipe, tiny_bert, tmp_path, capsys):
    number = list(EpochSampler(12, 42))[4]
    words = ["mountain " * 20 if place == number else "river" for place in range(12)]
    joint = TrainableCrossEncoder.load(str(tiny_bert))
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    with torch.no_grad():
        head = joint.language_model.cls.predictions
        head.bias[tokenizer.convert_tokens_to_ids("mountain")] = -LARGEST
    joint.save(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    model = str(tmp_path / "model")
    path = of_lines(recipe, tmp_path, words, model=model, losses=losses)
    assert NAMED.format(number) in error_of(capsys, "finetune", path)


def finetuning_datasete_of_two(rank, port, path, folder):
    """Keeps what is written to stderr, and fails unless the command ends with status 2."""
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    with (
        Path(folder, f"errors-{rank}").open("w") as errors,
        contextlib.redirect_stderr(errors),
    ):
        assert main(["finetune", path]) == 2
    # The trainer goes before its process group, and neither process before the other has ended.
    gc.collect()
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_one_processs_example_stops_both(recipe, tiny_bert, tmp_path):
    """Of 12 groups in batches of 2, places 4 and 5 are the first process's, 6 and 7 the other's."""
    number = list(EpochSampler(12, 42))[6]
    words = ["mountain" if place == number else "river" for place in range(12)]
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    model = damaged(tiny_bert, tmp_path / "model", without_a_word(tokenizer, "mountain"))
    path = of_lines(recipe, tmp_path, words, model=model, losses={"lce": 1})
    spawn(finetuning_datasete_of_two, args=(free_port(), path, str(tmp_path)), nprocs=2)
    for rank in range(2):
        lines = (tmp_path / f"errors-{rank}").read_text().splitlines()
        (line,) = [line for line in lines if line.startswith("harp: error:")]
        assert NAMED.format(number).replace("step 3", "step 2") in line


def test_weights_that_a_learning_rate_has_broken(recipe, tmp_path, capsys):
    line = error_of(capsys, "train", recipe(learning_rate=1e30, warmup_ratio=0, logging_steps=2))
    assert re.search(r"at step [23], for 4 of 4 groups of a batch: the first is \w+, epoch 0", line)
    assert re.search(r"the weights are no longer finite \([\w.]+\): lower learning_rate", line)


def test_a_broken_model_is_not_saved(recipe, tmp_path, capsys):
    changes = {"save_strategy": "steps", "save_steps": 3, "logging_steps": 500}
    error_of(capsys, "train", recipe(learning_rate=1e30, warmup_ratio=0, **changes))
    assert not list((tmp_path / "out").glob("checkpoint-*"))


def test_the_first_group_that_is_no_number_is_kept():
    watch, places = StopAtNonFinite("cpu", None, None), torch.tensor([[0, 7], [0, 3], [1, 2]])
    for step, losses in enumerate(
        [[1.0, 2.0, 0.0], [1.0, torch.inf, torch.nan], [torch.nan, 1.0, 1.0]]
    ):
        watch.add(step, places, torch.tensor(losses))
    assert watch.first.tolist() == [1, 0, 3, 2, 3]
