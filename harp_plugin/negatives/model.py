"""The stage ``model_negatives``: BM25's candidates, ranked by a cross-encoder."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import HarpError
from ..models.devices import (
    default_dtype,
    device_queue,
    one_thread,
    own_device,
    take_device,
    worker_devices,
)
from ..models.loading import choose_device, model_fingerprint
from ..ranking.scorer import Scorer
from ..weights.options import DTYPES
from ..work.build_stage import BuildRequest, BuildStage, StageOptions, part_name
from ..work.manifest import read_manifest, table_files
from ..work.parquet import read_batches
from ..work.stage import Stage
from .mining import Ranker, Ranking, mine, rank
from .options import NegativeOptions
from .queries import BuildTexts

__all__ = ["build_model_negatives"]

_CANDIDATES = "bm25_negatives"
_BATCH_TOKENS_ON_GPU = 65536
_QUERIES_AT_ONCE = 512


def _load_ranker(candidates: Path, device: str, model: str, dtype: str) -> Ranker:
    """Load the cross-encoder that scores the candidates of BM25.

    Args:
        candidates: the folder of the stage ``bm25_negatives``.
        device: where it computes, unless the process has a device of its own.
        model: names the cross-encoder.
        dtype: of the numbers that it computes with.
    """
    device = own_device[0] if own_device else device
    # Batches must not depend on the free memory.
    batch_tokens = None if device == "cpu" else _BATCH_TOKENS_ON_GPU
    scorer = Scorer(model, device=device, dtype=dtype, batch_tokens=batch_tokens)

    @one_thread()
    def ranked(texts: BuildTexts, queries: str, ids: np.ndarray) -> list[Ranking]:
        rankings: list[Ranking] = []
        path = candidates / queries / f"{part_name(ids)}.parquet"
        for batch in read_batches(path, ["id", "pages"], _QUERIES_AT_ONCE):
            scores = _score(scorer, texts, queries, batch)
            ends = np.cumsum(batch.column("pages").value_lengths().to_numpy())[:-1]
            pages = batch.column("pages").flatten().to_numpy()
            rankings += map(rank, np.split(pages, ends), np.split(scores, ends))
        return rankings

    return ranked


def _score(scorer: Scorer, texts: BuildTexts, queries: str, batch: pa.RecordBatch) -> np.ndarray:
    """Score the pages of some queries, in the order of the table; float32 of shape (pages,)."""
    pages = batch.column("pages")
    query_texts = texts.queries(queries, batch.column("id").to_numpy())
    counts = pages.value_lengths().to_pylist()
    repeated = [text for text, count in zip(query_texts, counts, strict=True) for _ in range(count)]
    distinct, numbers = np.unique(pages.flatten().to_numpy(), return_inverse=True)
    documents = texts.document_texts(distinct)
    return scorer.score(repeated, [documents[number] for number in numbers])


def _options(request: BuildRequest) -> StageOptions:
    """Tell what decides the ranking.

    Scores are computed in bfloat16 on a GPU and in float32 on a CPU; a finished stage of either
    dtype is taken.
    """
    model = _model(request)
    default = default_dtype(choose_device(request.worker_device))
    dtypes = sorted(DTYPES, key=lambda dtype: dtype != default)
    recorded, *equivalents = ({"model": model, "dtype": dtype} for dtype in dtypes)
    packages = ("torch", "transformers", "tokenizers", "pyarrow")
    return StageOptions(recorded, {"model": model_fingerprint(model)}, packages, equivalents)


def _check(request: BuildRequest) -> None:
    """Load the model, to see that it is a cross-encoder with trained weights."""
    _ = Scorer(_model(request), device="cpu").limit


def _model(request: BuildRequest) -> str:
    model = request.of(NegativeOptions).negatives_model
    if model is None:
        raise HarpError("--negatives model needs --negatives-model: name a cross-encoder")
    return model


def _rank_candidates(stage: Stage, request: BuildRequest) -> dict[str, Any] | None:
    """Score the pages of the stage ``bm25_negatives`` by a model, and ranks them by this score.

    The tables are those of ``bm25_negatives``, with the same pages in the model's order. The model
    reads the texts that BM25 reads: the query, and the title and the lead of the page. On a CPU
    every worker computes with one thread, so that the bytes do not depend on their number; on GPUs
    there is one worker for each. Spark scores in its executors.
    """
    candidates = request.directory / _CANDIDATES
    options = read_manifest(candidates)["settings"]
    for queries in options["queries"]:
        table_files(candidates, queries)  # checks them
    devices = worker_devices(choose_device(request.worker_device), request.workers)
    are_finished = mine(
        stage,
        request,
        (_load_ranker, candidates, devices[0], stage.options["model"], stage.options["dtype"]),
        options,
        workers=len(devices),
        engine=request.engine,
        begin=partial(take_device, device_queue(devices)),
    )
    return {} if are_finished else None


build_model_negatives = BuildStage(
    "model_negatives",
    ("corpus", "graph", _CANDIDATES),
    _options,
    _rank_candidates,
    _check,
    can_be_shared=True,
)
