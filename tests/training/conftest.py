"""Small runs on pair groups that are made from a few sentences."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
import torch
from random_bert import save_random_bert

from harp_plugin.tasks import Pair, PairGroup

ROOT = Path(__file__).parents[2]
TEXT = """index query ranking document term weight link anchor page model vector search engine
corpus token score graph crawl cluster snippet"""
WORDS = TEXT.split()


class SentenceGroups:
    """Pair groups by arithmetic: a query's words are in its positive, not in its negatives.

    Every third group has two negatives.
    """

    def __init__(self, size: int = 24, tasks: tuple[str, ...] = ("rqp", "qdm")) -> None:
        self.size = size
        self.tasks = tasks

    def __len__(self) -> int:
        return self.size

    def group(self, epoch: int, index: int) -> PairGroup:
        start = (7 * epoch + 3 * index) % len(WORDS)
        words = [WORDS[(start + step) % len(WORDS)] for step in range(len(WORDS))]
        query = " ".join(words[:2])
        positive = Pair(query, f"The {' '.join(words[:8])} belong together in epoch {epoch}.")
        negatives = tuple(
            Pair(query, f"Here {' '.join(words[8 + 4 * number :])} stand number {index}.")
            for number in range(1 + (index % 3 == 0))
        )
        return PairGroup(self.tasks[index % len(self.tasks)], positive, negatives)


class ManyNegatives(SentenceGroups):
    """Groups of two to nine members, of every size in turn."""

    def group(self, epoch: int, index: int) -> PairGroup:
        first = super().group(epoch, index)
        negatives = tuple(
            Pair(first.positive.query, " ".join(WORDS[place : 2 * place + 3]))
            for place in range(1 + index % 8)
        )
        return PairGroup(first.task, first.positive, negatives)


class Killed(BaseException):
    pass


class DyingGroups(SentenceGroups):
    """Groups that end the run when one too many is read."""

    def __init__(self, reads: int) -> None:
        super().__init__()
        self.reads = reads

    def group(self, epoch, index):
        self.reads -= 1
        if self.reads < 0:
            raise Killed
        return super().group(epoch, index)


@pytest.fixture(scope="session")
def tiny_bert(wordy_bert, shared_folder):
    """The same of four thousand pieces and those of `TEXT`: each run loads and saves them."""
    name, save = "tiny-bert-of-few-words", save_random_bert
    return shared_folder(name, lambda folder: save(wordy_bert, folder, TEXT))


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def groups() -> SentenceGroups:
    return SentenceGroups()


@pytest.fixture
def options(tiny_bert, tmp_path):
    """Makes the three dataclasses of a ten-step run, changed as asked."""

    def make(**changes):
        recipe = {
            "model": str(tiny_bert),
            "build_dir": "unread",
            "tasks": {"rqp": 1, "qdm": 1},
            "output_dir": str(tmp_path / "out"),
            "max_length": 40,
            "per_device_train_batch_size": 5,
            "learning_rate": 1e-3,
            "max_steps": 10,
            "logging_steps": 1,
            "save_steps": 2,
            "use_cpu": True,
            "disable_tqdm": True,
            **changes,
        }
        return parse(recipe)

    return make


def parse(recipe):
    """Make the three dataclasses of a pre-training from one flat recipe."""
    from harp_plugin.training.arguments import PRETRAINING

    return tuple(
        options(**{f.name: recipe[f.name] for f in fields(options) if f.name in recipe})
        for options in PRETRAINING
    )


def four_steps(model, folder, groups=None, /, **changes):
    """Train for four steps, with checkpoints at steps 2 and 4, changed as asked."""
    from harp_plugin.training.run import fit

    recipe = {
        "model": str(model),
        "build_dir": "unread",
        "tasks": {"rqp": 1, "qdm": 1},
        "output_dir": str(folder),
        "max_length": 40,
        "per_device_train_batch_size": 5,
        "max_steps": 4,
        "logging_steps": 1,
        "save_steps": 2,
        "use_cpu": True,
        "disable_tqdm": True,
        **changes,
    }
    return fit(groups or SentenceGroups(), *parse(recipe))


@pytest.fixture(scope="session")
def four_step_run(tiny_bert, tmp_path_factory):
    """The folder of a finished run of four steps; tests copy it."""
    return four_steps(tiny_bert, tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture
def still_bert(tiny_bert, tmp_path):
    """The tiny BERT without dropout."""
    folder = tmp_path / "still-bert"
    shutil.copytree(tiny_bert, folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


@pytest.fixture(scope="session")
def path_of_main() -> str:
    """The PYTHONPATH where ``tevatron`` is the main branch."""
    from harp_plugin.training.tevatron import IS_MAIN

    checkout = os.environ.get("HARP_TEVATRON_MAIN")
    if not IS_MAIN and not checkout:
        pytest.skip("HARP_TEVATRON_MAIN names no checkout of Tevatron's main branch")
    first = [str(Path(checkout, "src").resolve())] if checkout else []
    path = [*first, str(ROOT), str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.pathsep.join(path)


@pytest.fixture
def python_on_main(path_of_main, tmp_path):
    """Runs Python with arguments where ``tevatron`` is the main branch, and returns its output."""

    def run(*arguments: object) -> str:
        done = subprocess.run(
            [sys.executable, *map(str, arguments)],
            env=os.environ | {"PYTHONPATH": path_of_main},
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def on_main(python_on_main):
    """Runs a script, its arguments as JSON, on the main branch, and reads its last line."""

    def run(script: str, **arguments):
        return json.loads(python_on_main("-c", script, json.dumps(arguments)).splitlines()[-1])

    return run
