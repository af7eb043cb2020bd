"""Dense retrieval: texts a second against other toolkits, and searches of many vectors.

    python benchmarks/dense.py encode MODEL --dataset harp:FOLDER --threads 2
    python benchmarks/dense.py search --vectors 1000000

``encode`` encodes the same documents by each toolkit in turn, several times; loading and a first
few documents are not timed. ``search`` makes vectors around random centers, writes them as an index
of pyterrier_dr, and searches them by each algorithm of `HarpRetriever`: time, memory, and how many
of the exact search's ten best are found. The tables are Markdown.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import torch

from harp_plugin.models.loading import resolve_model

if TYPE_CHECKING:
    from pyterrier_dr import FlexIndex

WARM = 16
WIDTH = 384
CENTRES = 2000
QUERIES = 200
SEARCHES = [
    ("exact", {}),
    ("np_retriever of pyterrier_dr", {}),
    ("faiss", {}),
    ("hnsw", {"ef_search": 64}),
    ("ivf", {"n_probe": 16}),
]

Encode = Callable[[Sequence[str]], object]


def ours(model: str, dtype: str, device: str = "cpu") -> Encode:
    """The encoder of `harp index`."""
    from harp_plugin.ranking.dense.encoder import Encoder

    return Encoder(model, device=device, dtype=dtype).documents


def sentence_transformers(model: str, dtype: str, device: str = "cpu") -> Encode:
    """``encode``: sorted by length, batches of 32, padded."""
    from sentence_transformers import SentenceTransformer

    options = {"dtype": getattr(torch, dtype)}
    encoder = SentenceTransformer(resolve_model(model), device=device, model_kwargs=options)
    return lambda texts: encoder.encode(list(texts), show_progress_bar=False)


def pyterrier_dr(model: str, dtype: str) -> Encode:
    """``SBertBiEncoder``, float32."""
    from pyterrier_dr import SBertBiEncoder

    encoder = SBertBiEncoder(resolve_model(model), device="cpu", verbose=False)
    return lambda texts: encoder.encode_docs(list(texts))


def encode(arguments: argparse.Namespace) -> None:
    """Time each toolkit, one after another, in each round."""
    from harp_plugin.collections.dataset import Dataset

    dataset = Dataset(arguments.dataset)
    step = max((dataset.document_count or arguments.documents) // arguments.documents, 1)
    texts = [text for _, text in islice(dataset.documents(), 0, None, step)]
    toolkits: dict[str, Encode] = {
        "sentence-transformers, float32": sentence_transformers(arguments.model, "float32"),
        "pyterrier_dr, float32": pyterrier_dr(arguments.model, "float32"),
        "ours, float32": ours(arguments.model, "float32"),
        "sentence-transformers, bfloat16": sentence_transformers(arguments.model, "bfloat16"),
        "ours, bfloat16": ours(arguments.model, "bfloat16"),
    }
    rates: dict[str, list[float]] = {name: [] for name in toolkits}
    for _ in range(arguments.rounds):
        for name, run in toolkits.items():
            run(texts[:WARM])
            began = time.perf_counter()
            run(texts)
            rates[name].append(len(texts) / (time.perf_counter() - began))
    first = np.median(next(iter(rates.values())))
    print("| toolkit | documents a second | rounds | against the first |\n|---|---|---|---|")
    for name, values in rates.items():
        spread = f"{min(values):.1f} to {max(values):.1f}"
        print(f"| {name} | {np.median(values):.1f} | {spread} | {np.median(values) / first:.2f} |")


def vectors(count: int) -> Iterator[np.ndarray]:
    """Unit vectors around random centers, block by block; the queries come first."""
    rng = np.random.default_rng(42)
    centers = rng.standard_normal((CENTRES, WIDTH), np.float32)
    for first in range(0, count, 10_000):
        size = min(10_000, count - first)
        noise = rng.standard_normal((size, WIDTH), np.float32)
        block = centers[rng.integers(CENTRES, size=size)] + noise
        yield block / np.linalg.norm(block, axis=1, keepdims=True)


def search(arguments: argparse.Namespace) -> None:
    """Time the making of each index, and searches of many queries and of one at a time."""
    from pyterrier_dr import FlexIndex

    queries = next(vectors(QUERIES))
    frame = pd.DataFrame({"qid": [str(n) for n in range(QUERIES)], "query_vec": list(queries)})
    with tempfile.TemporaryDirectory() as folder:
        flex = FlexIndex(str(Path(folder) / "index"), verbose=False)
        began = time.perf_counter()
        blocks = (vector for block in vectors(arguments.vectors) for vector in block)
        flex.index({"docno": f"d{n}", "doc_vec": vector} for n, vector in enumerate(blocks))
        print(f"{arguments.vectors:,} vectors written in {time.perf_counter() - began:.0f} s\n")
        print("| algorithm | made in | ms a query, of many | ms of one | of the ten best | GB |")
        print("|---|---|---|---|---|---|")
        exact: dict[str, set[str]] = {}
        for name, options in SEARCHES:
            began = time.perf_counter()
            retriever = retriever_of(flex, name, options)
            retriever(frame.head(1))
            made = time.perf_counter() - began
            began = time.perf_counter()
            found = retriever(frame)
            of_many = (time.perf_counter() - began) / QUERIES
            began = time.perf_counter()
            for place in range(20):
                retriever(frame.iloc[[place]])
            of_one = (time.perf_counter() - began) / 20
            best = {str(qid): set(rows["docno"]) for qid, rows in found.groupby("qid")}
            exact = exact or best
            recall = np.mean([len(best[qid] & exact[qid]) / 10 for qid in exact])
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            print(
                f"| {name} {options or ''} | {made:.0f} s | {1000 * of_many:.1f} | "
                f"{1000 * of_one:.1f} | {recall:.3f} | {memory:.1f} |",
                flush=True,
            )


def retriever_of(
    flex: FlexIndex, name: str, options: dict[str, Any]
) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return what finds the ten best vectors of each query, by the name of an algorithm."""
    from harp_plugin.ranking.dense.documents import DocumentVectors
    from harp_plugin.ranking.dense.retriever import ALGORITHMS
    from harp_plugin.ranking.frames import result_frame

    if name != "exact":
        method = ALGORITHMS.get(name, name.partition(" ")[0])
        return getattr(flex, method)(**options) % 10
    documents = DocumentVectors.read(flex, 1)
    return lambda frame: result_frame(frame, documents.search(np.stack([*frame["query_vec"]]), 10))


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    encoding = commands.add_parser("encode")
    encoding.add_argument("model")
    encoding.add_argument("--dataset", required=True)
    encoding.add_argument("--documents", type=int, default=400)
    encoding.add_argument("--rounds", type=int, default=3)
    encoding.add_argument("--threads", type=int, default=2)
    encoding.set_defaults(run=encode)
    searching = commands.add_parser("search")
    searching.add_argument("--vectors", type=int, default=1_000_000)
    searching.add_argument("--threads", type=int, default=2)
    searching.set_defaults(run=search)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    arguments.run(arguments)


if __name__ == "__main__":
    main()
