"""Two processes, gloo on the CPU, against one."""

import json
import os
import shutil
import socket

import pytest
import torch
from safetensors.torch import load_file
from torch import multiprocessing

from harp_plugin.training.run import fit

from .conftest import DyingGroups, Killed, SentenceGroups


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def train_one_of_two(rank: int, port: int, recipe: dict, killed: bool = False) -> None:
    """Train; if ``killed``, until both are in the second epoch, then from the only checkpoint."""
    from transformers import HfArgumentParser

    from harp_plugin.training.arguments import (
        HarpDataArguments,
        HarpModelArguments,
        HarpTrainingArguments,
    )

    torch.set_num_threads(1)
    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE="2",
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
    )
    parser = HfArgumentParser((HarpModelArguments, HarpDataArguments, HarpTrainingArguments))
    if killed:
        with pytest.raises(Killed):
            fit(DyingGroups(20), *parser.parse_dict(recipe))
    fit(SentenceGroups(), *parser.parse_dict(recipe))
    torch.distributed.destroy_process_group()


@pytest.fixture
def still_bert(tiny_bert, tmp_path):
    """The tiny BERT without dropout."""
    folder = tmp_path / "still-bert"
    shutil.copytree(tiny_bert, folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


@pytest.mark.integration
@pytest.mark.parametrize(
    ("losses", "killed"), [({"hinge": 1, "mlm": 1}, True), ({"mlm": 1}, False), ({"lce": 1}, False)]
)
def test_two_processes_train_what_one_trains_with_the_same_global_batch(
    losses, killed, options, still_bert, tmp_path
):
    common = {
        "model_name_or_path": still_bert,
        "losses": losses,
        "max_steps": 8,
        "optim": "sgd",
        "learning_rate": 0.1,
        "weight_decay": 0.1,
        "save_steps": 5,
    }
    one = fit(
        SentenceGroups(),
        *options(per_device_train_batch_size=6, output_dir=str(tmp_path / "one"), **common),
    )
    recipe = {
        "build_dir": "unread",
        "tasks": {"rqp": 1, "qdm": 1},
        "output_dir": str(tmp_path / "two"),
        "max_length": 40,
        "per_device_train_batch_size": 3,
        "logging_steps": 1,
        "use_cpu": True,
        "disable_tqdm": True,
        **common,
    }
    multiprocessing.spawn(train_one_of_two, args=(free_port(), recipe, killed), nprocs=2)
    expected = load_file(one / "model.safetensors")
    actual = load_file(tmp_path / "two" / "model.safetensors")
    assert expected.keys() == actual.keys()
    for name, weight in expected.items():
        torch.testing.assert_close(actual[name], weight, atol=1e-6, rtol=1e-5)
    lines = [
        json.loads((folder / "training_log.json").read_text()) for folder in (one, tmp_path / "two")
    ]
    for first, second in zip(*lines, strict=True):
        assert first == pytest.approx(second, abs=1e-5)
