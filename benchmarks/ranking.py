"""Pairs per second, memory and nDCG@10 of `Scorer` beside other cross-encoder toolkits.

    python benchmarks/ranking.py MODEL --threads 2

The same checkpoint reranks BM25's best results (or a run's) for each dataset. Each toolkit runs in
a process of its own, one after another, in the precision named, with its default batch; loading and
a first few pairs are not timed. What is not installed is left out, with a line that says so.
The tables are Markdown.

With --stream N, N made-up pairs of distinct texts are streamed through one process instead, and its
memory is printed as it goes.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

MAX_LENGTH = 512

Score = Callable[[Sequence[str], Sequence[str]], np.ndarray]


def ours(model: str, dtype: str, device: str) -> Score:
    """`harp_plugin.Scorer`."""
    from harp_plugin import Scorer

    return Scorer(model, dtype=dtype, device=device, max_length=MAX_LENGTH).score


def sentence_transformers(model: str, dtype: str, device: str, **options: Any) -> Score:
    """``CrossEncoder.predict``: sorted by characters, batches of 32."""
    from sentence_transformers import CrossEncoder

    options["dtype"] = getattr(torch, dtype)
    encoder = CrossEncoder(model, max_length=MAX_LENGTH, device=device, model_kwargs=options)
    identity = torch.nn.Identity()
    return lambda queries, documents: encoder.predict(
        list(zip(queries, documents, strict=True)), activation_fn=identity
    )


def pyterrier_plugin(model: str, dtype: str, device: str) -> Score:
    """As PyTerrier's plugins write it (pyterrier_dr's ElectraScorer): row by row, batches of 16."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    network = AutoModelForSequenceClassification.from_pretrained(model, dtype=getattr(torch, dtype))
    network.to(device).eval()
    tokenizer = AutoTokenizer.from_pretrained(model)

    @torch.no_grad()
    def score(queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
        rows, scores = iter(zip(queries, documents, strict=True)), []
        while batch := list(islice(rows, 16)):
            inputs = tokenizer(
                *map(list, zip(*batch, strict=True)),
                return_tensors="pt",
                padding=True,
                truncation=True,
                max_length=MAX_LENGTH,
            )
            inputs = {name: values.to(device) for name, values in inputs.items()}
            scores.append(network(**inputs).logits[:, -1].float().cpu().numpy())
        return np.concatenate(scores)

    return score


def flag_embedding(model: str, dtype: str, device: str) -> Score:
    """FlagEmbedding's ``FlagReranker``: sorted by tokens, batches of 128."""
    from FlagEmbedding import FlagReranker

    reranker = FlagReranker(
        model, devices=[device], use_fp16=dtype == "float16", max_length=MAX_LENGTH
    )
    return lambda queries, documents: np.array(
        reranker.compute_score([list(pair) for pair in zip(queries, documents, strict=True)])
    )


def rerankers(model: str, dtype: str, device: str) -> Score:
    """AnswerDotAI's ``rerankers``: a query at a time, batches of 16."""
    from rerankers import Reranker

    ranker = Reranker(model, model_type="cross-encoder", dtype=dtype, device=device, verbose=0)

    def score(queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
        scores = np.empty(len(queries))
        _, groups = np.unique(np.array(queries), return_inverse=True)
        for group in range(groups.max() + 1):
            places = np.flatnonzero(groups == group).tolist()
            texts = [documents[place] for place in places]
            for found in ranker.rank(queries[places[0]], texts, doc_ids=places).results:
                scores[found.document.doc_id] = found.score
        return scores

    return score


TOOLKITS: dict[str, tuple[str, Callable[[str, str, str], Score]]] = {
    "harp_plugin": ("harp_plugin", ours),
    "sentence-transformers": ("sentence_transformers", sentence_transformers),
    "sentence-transformers, FlashAttention-2": (
        "flash_attn",
        partial(sentence_transformers, attn_implementation="flash_attention_2"),
    ),
    "PyTerrier plugin": ("transformers", pyterrier_plugin),
    "FlagEmbedding": ("FlagEmbedding", flag_embedding),
    "rerankers": ("rerankers", rerankers),
}
"""By name: the package it needs, and what makes its scorer."""


def main() -> None:
    """Run each toolkit in turn and print a table for each dataset."""
    options = _options()
    if options.stream:
        _stream(options)
    elif options.only:
        print(json.dumps(_timed(options)))
    else:
        for dataset in options.datasets:
            _compare(dataset, options)


def _compare(dataset: str, options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        frame, qrels = _first_stage(dataset, options, Path(folder))
        rows = Path(folder) / "rows.json"
        rows.write_text(
            json.dumps({name: frame[name].tolist() for name in ("query", "text")}), encoding="utf-8"
        )
        runs = _runs(options)
        found: dict[tuple[str, str], list[dict[str, Any]]] = {run: [] for run in runs}
        for number in range(options.rounds):
            for run in runs if number % 2 == 0 else runs[::-1]:
                found[run].append(_run_alone(run, rows, options))
    queries = frame["qid"].nunique()
    print(f"\n{dataset}: {len(frame)} pairs of {queries} queries, {options.threads} threads\n")
    print("| toolkit | dtype | pairs/s | against the best other | peak memory, GB | nDCG@10 |")
    print("|---|---|---|---|---|---|")
    base = max(
        (_rate(results) for (name, _), results in found.items() if name != "harp_plugin"),
        default=float("nan"),
    )
    for (name, dtype), results in found.items():
        memory = max(result["memory"] for result in results)
        ndcg = _ndcg(frame, qrels, np.array(results[0]["scores"]))
        rate = _rate(results)
        print(f"| {name} | {dtype} | {rate:.1f} | {rate / base:.2f} | {memory:.2f} | {ndcg:.4f} |")


def _rate(results: list[dict[str, Any]]) -> float:
    return max(result["rate"] for result in results)


def _runs(options: argparse.Namespace) -> list[tuple[str, str]]:
    runs = [("harp_plugin", dtype) for dtype in options.dtypes]
    for name in options.toolkits:
        package, _ = TOOLKITS[name]
        if importlib.util.find_spec(package) is None:
            print(f"{name} is left out: no package {package} is installed", file=sys.stderr)
        elif name != "harp_plugin":
            runs.append((name, options.baseline_dtype))
    return runs


def _run_alone(run: tuple[str, str], rows: Path, options: argparse.Namespace) -> dict[str, Any]:
    name, dtype = run
    environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads), TQDM_DISABLE="1")
    command = [sys.executable, __file__, options.model, "--only", name, "--rows", str(rows)]
    command += ["--dtypes", dtype, "--threads", str(options.threads), "--device", options.device]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environment)
    result = json.loads(done.stdout.splitlines()[-1])
    rates = f"{result['rate']:.1f} pairs/s, {result['per_cpu_second']:.1f} a second of one core"
    print(f"{name} {dtype}: {rates}", file=sys.stderr)
    return result


def _timed(options: argparse.Namespace) -> dict[str, Any]:
    torch.set_num_threads(options.threads)
    rows = json.loads(Path(options.rows).read_text(encoding="utf-8"))
    queries, documents = rows["query"], rows["text"]
    _, make = TOOLKITS[options.only]
    score = make(options.model, options.dtypes[0], options.device)
    score(queries[: options.warm], documents[: options.warm])
    started, computed = time.perf_counter(), time.process_time()
    scores = score(queries, documents)
    seconds, computed = time.perf_counter() - started, time.process_time() - computed
    if options.device.startswith("cuda"):
        memory = torch.cuda.max_memory_reserved() / 1e9
    else:
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {
        "rate": len(queries) / seconds,
        "per_cpu_second": len(queries) / computed,
        "memory": memory,
        "scores": np.asarray(scores, dtype=float).tolist(),
    }


def _first_stage(
    dataset: str, options: argparse.Namespace, folder: Path
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The rows to rerank, with texts, and the judgments."""
    from harp_plugin.collections.dataset import JudgedDataset
    from harp_plugin.evaluation import EvaluationOptions
    from harp_plugin.evaluation.first_stage import first_stage

    evaluation = EvaluationOptions(
        dataset=dataset,
        first_stage=options.first_stage,
        depth=options.depth,
        output_dir=str(folder),
        quiet=True,
    )
    collection = JudgedDataset(dataset)
    run = first_stage(evaluation, collection).retrieve()
    if options.pairs:
        run = run[run["qid"].isin(run["qid"][: options.pairs].unique())][: options.pairs]
    return collection.with_texts(run).reset_index(drop=True), collection.qrels


def _ndcg(frame: pd.DataFrame, qrels: pd.DataFrame, scores: np.ndarray) -> float:
    """nDCG@10, ties in the order of the first stage."""
    import ir_measures

    order = np.lexsort((frame["rank"], -scores))
    run = pd.DataFrame(
        {
            "query_id": frame["qid"].to_numpy()[order],
            "doc_id": frame["docno"].to_numpy()[order],
            "score": -np.arange(len(frame), dtype=float),
        }
    )
    judged = qrels[qrels["qid"].isin(frame["qid"])]
    judged = judged.rename(columns={"qid": "query_id", "docno": "doc_id", "label": "relevance"})
    measure = ir_measures.nDCG @ 10
    return ir_measures.calc_aggregate([measure], judged, run)[measure]


def _stream(options: argparse.Namespace) -> None:
    import psutil

    from harp_plugin import Scorer

    torch.set_num_threads(options.threads)
    scorer = Scorer(options.model, dtype=options.dtypes[0], device=options.device)
    process, done, started = psutil.Process(), 0, time.perf_counter()
    print("| pairs | resident memory, GB | pairs/s |\n|---|---|---|")
    pairs = _made_up(options.stream)
    while part := list(islice(pairs, max(1, options.stream // 10))):
        done += len(scorer.score(*zip(*part, strict=True)))
        rate = done / (time.perf_counter() - started)
        print(f"| {done} | {process.memory_info().rss / 1e9:.3f} | {rate:.0f} |", flush=True)


def _made_up(count: int) -> Iterator[tuple[str, str]]:
    draw = np.random.default_rng(0)
    for number in range(count):
        words = draw.integers(100, 5000, size=draw.integers(5, 60)).tolist()
        yield f"query {number // 100}", " ".join(map(str, (number, *words)))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", help="a checkpoint folder with a trained head")
    parser.add_argument("--datasets", nargs="+", default=["vaswani", "cranfield"])
    parser.add_argument("--first-stage", default="bm25", help="bm25, or the path of a TREC run")
    parser.add_argument("--depth", type=int, default=100)
    parser.add_argument("--pairs", type=int, help="only the first so many")
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--baseline-dtype", default="float32", help="of the other toolkits")
    others = [name for name in TOOLKITS if name != "harp_plugin"]
    parser.add_argument("--toolkits", nargs="*", default=others, choices=others)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rounds", type=int, default=2, help="the best of them counts")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--warm", type=int, default=16, help="pairs that are not timed")
    parser.add_argument("--stream", type=int, help="stream so many made-up pairs instead")
    parser.add_argument("--only", choices=list(TOOLKITS), help=argparse.SUPPRESS)
    parser.add_argument("--rows", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
