"""Two processes, gloo on the CPU, against one."""

import json
import os
import socket
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import multiprocessing

from harp_plugin.models.loading import WEIGHTS
from harp_plugin.training.run import fit

from .conftest import DyingGroups, Killed, SentenceGroups, parse

OF_A_BI_ENCODER = {"losses": {"contrastive": {"temperature": 5}}, "model_kind": "bi-encoder"}


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def join(rank: int, port: int) -> None:
    """Make this process one of two."""
    torch.set_num_threads(1)
    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE="2",
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
    )


def train_one_of_two(rank: int, port: int, recipe: dict, killed: bool = False) -> None:
    """Train; if ``killed``, until both are in the second epoch, then from the only checkpoint."""
    join(rank, port)
    if killed:
        with pytest.raises(Killed):
            fit(DyingGroups(20), *parse(recipe))
    fit(SentenceGroups(), *parse(recipe))
    torch.distributed.destroy_process_group()


class Listening(SentenceGroups):
    """Keeps what was read, in order."""

    def __init__(self, size):
        super().__init__(size)
        self.read = []

    def group(self, epoch, index):
        self.read.append([epoch, index])
        return super().group(epoch, index)


def listen_as_one_of_two(rank: int, port: int, recipe: dict, folder: str) -> None:
    join(rank, port)
    groups = Listening(63)
    fit(groups, *parse(recipe))
    Path(folder, f"read-{rank}.json").write_text(json.dumps(groups.read))
    torch.distributed.destroy_process_group()


class OnTheFirst:
    """A validation that draws from every generator and tells in which process it is asked."""

    dataset, queries, measures = "none", (), ("nDCG@10",)

    def __call__(self, model, tokenizer, files):
        assert os.environ["RANK"] == "0"
        torch.rand(1)
        score = model(**tokenizer(["query"], ["document"], return_tensors="pt")).logits
        return {"nDCG@10": float(score[0, 0])}


def validate_on_the_first(rank: int, port: int, recipe: dict, watched: dict) -> None:
    join(rank, port)
    fit(SentenceGroups(), *parse(recipe))
    fit(SentenceGroups(), *parse(recipe | watched), validation=OnTheFirst())
    torch.distributed.destroy_process_group()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "killed"),
    [
        ({"losses": {"hinge": 1, "mlm": 1}}, True),
        ({"losses": {"mlm": 1}}, False),
        ({"losses": {"lce": 1}}, False),
        (OF_A_BI_ENCODER, False),
    ],
)
def test_two_processes_train_what_one_trains_with_the_same_global_batch(
    changes, killed, options, still_bert, tmp_path
):
    common = {
        "model": still_bert,
        **changes,
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
    expected, actual = (load_file(tmp_path / name / WEIGHTS) for name in ("one", "two"))
    assert expected.keys() == actual.keys()
    for name, weight in expected.items():
        torch.testing.assert_close(actual[name], weight, atol=1e-6, rtol=1e-5)
    lines = [
        json.loads((folder / "training_log.json").read_text()) for folder in (one, tmp_path / "two")
    ]
    for first, second in zip(*lines, strict=True):
        assert first == pytest.approx(second, abs=1e-5)


def log_of(folder):
    return json.loads((folder / "training_log.json").read_text())


@pytest.mark.slow
def test_two_epochs_on_two_processes_see_the_pairs_of_one_and_none_twice(
    options, still_bert, tmp_path
):
    common = {
        "model": still_bert,
        "tasks": {"rqp": 1, "qdm": 1},
        "losses": {"lce": 1},
        "build_dir": "unread",
        "max_length": 40,
        "max_steps": 20,
        "save_strategy": "no",
        "learning_rate": 1e-3,
        "logging_steps": 1,
        "use_cpu": True,
        "disable_tqdm": True,
    }
    alone = Listening(63)
    one = {"per_device_train_batch_size": 6, "output_dir": str(tmp_path / "one")}
    fit(alone, *parse(common | one))
    two = {"per_device_train_batch_size": 3, "output_dir": str(tmp_path / "two")}
    arguments = (free_port(), common | two, str(tmp_path))
    multiprocessing.spawn(listen_as_one_of_two, args=arguments, nprocs=2)
    first, second = (
        {tuple(place) for place in json.loads((tmp_path / f"read-{rank}.json").read_text())}
        for rank in range(2)
    )
    # Sixty of the 63 groups in each of two epochs, each by one process.
    assert len(first) == len(second) == 60 and not first & second
    assert first | second == {tuple(place) for place in alone.read}
    assert len(alone.read) == 120
    losses = [[line["loss"] for line in log_of(tmp_path / name)] for name in ("one", "two")]
    assert len(losses[0]) == 20 and losses[0] == pytest.approx(losses[1], abs=1e-4)


@pytest.mark.slow
def test_the_first_process_validates_and_training_goes_on_unmoved(tiny_bert, tmp_path):
    recipe = {
        "model": str(tiny_bert),
        "build_dir": "unread",
        "tasks": {"rqp": 1, "qdm": 1},
        "output_dir": str(tmp_path / "alone"),
        "max_length": 40,
        "per_device_train_batch_size": 3,
        "max_steps": 6,
        "save_steps": 2,
        "learning_rate": 1e-2,
        "use_cpu": True,
        "disable_tqdm": True,
    }
    watched = {
        "output_dir": str(tmp_path / "watched"),
        "eval_strategy": "steps",
        "eval_steps": 2,
        "validation_dataset": "none",
        "validation_measures": ["nDCG@10"],
    }
    multiprocessing.spawn(validate_on_the_first, args=(free_port(), recipe, watched), nprocs=2)
    alone, seen = tmp_path / "alone", tmp_path / "watched"
    assert (alone / "model.safetensors").read_bytes() == (seen / "model.safetensors").read_bytes()
    assert log_of(alone) == [line for line in log_of(seen) if "loss" in line]
    values = [line["eval_nDCG@10"] for line in log_of(seen) if "eval_nDCG@10" in line]
    assert len(values) == len(set(values)) == 3
