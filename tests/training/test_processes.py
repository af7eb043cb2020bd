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


class Listening(SentenceGroups):
    """Keeps what was read, in order."""

    def __init__(self, size):
        super().__init__(size)
        self.read = []

    def group(self, epoch, index):
        self.read.append([epoch, index])
        return super().group(epoch, index)


class OnTheFirst:
    """A validation that draws from every generator and tells in which process it is asked."""

    dataset, queries, measures = "none", (), ("nDCG@10",)

    def __call__(self, model, tokenizer, files):
        assert os.environ["RANK"] == "0"
        torch.rand(1)
        score = model(**tokenizer(["query"], ["document"], return_tensors="pt")).logits
        return {"nDCG@10": float(score[0, 0])}


GLOBAL = {
    "hinge-mlm": {"losses": {"hinge": 1, "mlm": 1}},
    "mlm": {"losses": {"mlm": 1}},
    "lce": {"losses": {"lce": 1}},
    "bi-encoder": {"losses": {"contrastive": {"temperature": 5}}, "model_kind": "bi-encoder"},
}
"""What is trained by one process and by two; the first is killed in its second epoch."""
PLAIN = {
    "build_dir": "unread",
    "tasks": {"rqp": 1, "qdm": 1},
    "max_length": 40,
    "logging_steps": 1,
    "use_cpu": True,
    "disable_tqdm": True,
}
EIGHT_STEPS = {
    "max_steps": 8,
    "optim": "sgd",
    "learning_rate": 0.1,
    "weight_decay": 0.1,
    "save_steps": 5,
}
TWO_EPOCHS = {
    "losses": {"lce": 1},
    "max_steps": 20,
    "save_strategy": "no",
    "learning_rate": 1e-3,
}
UNWATCHED = {"max_steps": 6, "save_steps": 2, "learning_rate": 1e-2}
WATCHED = {
    "eval_strategy": "steps",
    "eval_steps": 2,
    "validation_dataset": "none",
    "validation_measures": ["nDCG@10"],
}


def recipe_of(model, output: Path, *, together: bool, **changes) -> dict:
    """A recipe for six groups a step: by one process, or by two."""
    size = {"per_device_train_batch_size": 3 if together else 6}
    return {**PLAIN, "model": str(model), "output_dir": str(output), **size, **changes}


def train_as_one_of_two(rank: int, port: int, still: str, dropping: str, folder: str) -> None:
    """All trainings, one after another, as starting two processes takes longer than any."""
    join(rank, port)

    def recipe(name, model=still, **changes):
        return parse(recipe_of(model, Path(folder, name), together=True, **changes))

    with pytest.raises(Killed):
        fit(DyingGroups(20), *recipe("hinge-mlm", **EIGHT_STEPS, **GLOBAL["hinge-mlm"]))
    for name, changes in GLOBAL.items():
        fit(SentenceGroups(), *recipe(name, **EIGHT_STEPS, **changes))
    groups = Listening(63)
    fit(groups, *recipe("epochs", **TWO_EPOCHS))
    Path(folder, f"read-{rank}.json").write_text(json.dumps(groups.read))
    fit(SentenceGroups(), *recipe("unwatched", dropping, **UNWATCHED))
    watched = recipe("watched", dropping, **UNWATCHED, **WATCHED)
    fit(SentenceGroups(), *watched, validation=OnTheFirst())
    torch.distributed.destroy_process_group()


@pytest.fixture
def two(shared_folder, still_bert, tiny_bert) -> Path:
    """The folder of what two processes have trained."""

    def fill(folder: Path) -> None:
        arguments = (free_port(), still_bert, str(tiny_bert), str(folder))
        multiprocessing.spawn(train_as_one_of_two, args=arguments, nprocs=2)

    return shared_folder("two-processes", fill)


@pytest.mark.slow
@pytest.mark.parametrize("name", GLOBAL)
def test_two_processes_train_what_one_trains_with_the_same_global_batch(
    name, two, still_bert, tmp_path
):
    recipe = recipe_of(still_bert, tmp_path / "one", together=False, **EIGHT_STEPS, **GLOBAL[name])
    one = fit(SentenceGroups(), *parse(recipe))
    expected, actual = (load_file(folder / WEIGHTS) for folder in (one, two / name))
    assert expected.keys() == actual.keys()
    for key, weight in expected.items():
        torch.testing.assert_close(actual[key], weight, atol=1e-6, rtol=1e-5)
    for first, second in zip(log_of(one), log_of(two / name), strict=True):
        assert first == pytest.approx(second, abs=1e-5)


def log_of(folder):
    return json.loads((folder / "training_log.json").read_text())


@pytest.mark.slow
def test_two_epochs_on_two_processes_see_the_pairs_of_one_and_none_twice(two, still_bert, tmp_path):
    alone = Listening(63)
    recipe = recipe_of(still_bert, tmp_path / "one", together=False, **TWO_EPOCHS)
    one = fit(alone, *parse(recipe))
    first, second = (
        {tuple(place) for place in json.loads((two / f"read-{rank}.json").read_text())}
        for rank in range(2)
    )
    # Sixty of the 63 groups in each of two epochs, each by one process.
    assert len(first) == len(second) == 60 and not first & second
    assert first | second == {tuple(place) for place in alone.read}
    assert len(alone.read) == 120
    losses = [[line["loss"] for line in log_of(folder)] for folder in (one, two / "epochs")]
    assert len(losses[0]) == 20 and losses[0] == pytest.approx(losses[1], abs=1e-4)


@pytest.mark.slow
def test_the_first_process_validates_and_training_goes_on_unmoved(two):
    alone, seen = two / "unwatched", two / "watched"
    assert (alone / "model.safetensors").read_bytes() == (seen / "model.safetensors").read_bytes()
    assert log_of(alone) == [line for line in log_of(seen) if "loss" in line]
    values = [line["eval_nDCG@10"] for line in log_of(seen) if "eval_nDCG@10" in line]
    assert len(values) == len(set(values)) == 3
