"""The stage ``model_negatives``: BM25's candidates, ranked by a cross-encoder."""

from __future__ import annotations

import multiprocessing
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..errors import HarpError
from ..models.devices import choose_device
from ..models.loading import model_fingerprint
from ..ranking.scorer import Scorer
from ..weights.attention import default_dtype
from ..weights.options import DTYPES
from ..weights.workers import one_thread, own_device, take_device, worker_devices
from ..work.manifest import read_content, read_manifest, table_files
from ..work.parquet import ShardFile, read_batches
from ..work.provenance import OverwriteRules
from ..work.sharing import ALONE, Share
from ..work.sql.options import EngineOptions
from ..work.stage import Stage
from .options import NegativeOptions
from .queries import BuildTexts
from .shards import Ranking, over_shards, rank, write_rankings

__all__ = ["build_model_negatives", "check_model", "model_negatives_stage"]

_CANDIDATES = "bm25_negatives"
_BATCH_TOKENS_ON_GPU = 65536
_QUERIES_AT_ONCE = 512


class _Shard(NamedTuple):
    queries: str
    candidates: ShardFile
    directory: Path
    stage: Stage
    device: str


def build_model_negatives(
    directory: Path,
    options: NegativeOptions,
    engine: EngineOptions | None = None,
    *,
    device: str | None = None,
    workers: int = 1,
    quiet: bool = True,
    rules: OverwriteRules | None = None,
    share: Share = ALONE,
) -> dict[str, Any]:
    """Score the pages of the stage ``bm25_negatives`` by a model, and rank them by this score.

    The tables are those of ``bm25_negatives``, with the same pages in the model's order; pages of
    the same score are ranked by id. The model reads the texts that BM25 reads: the query, and the
    title and the lead of the page. On a CPU every worker computes with one thread, so that the
    bytes do not depend on their number; on GPUs there is one worker for each.

    Args:
        directory: build folder whose stage ``bm25_negatives`` is finished.
        options: the model.
        engine: Spark scores in its executors.
        device: as for the stage ``weights``: a name such as ``cpu`` or ``cuda:1``; ``cuda`` is all
            GPUs; None takes GPUs where there are any.
        workers: the number of processes on a CPU.
        quiet: show no progress bar.
        rules: what may be done with other work in the folder.
        share: of this host, where several share the work.

    Returns:
        The stage's manifest.

    Raises:
        HarpError: no model is named, it cannot be loaded or is no cross-encoder, an earlier stage
            is unfinished or damaged, or the folder holds other work or other files.
    """
    read_content(directory, "corpus", "graph", _CANDIDATES)
    stage = model_negatives_stage(directory, options, device, rules)
    if stage.is_finished():
        return read_manifest(stage.folder)
    share.start(stage)
    devices = worker_devices(choose_device(device), workers)
    shards = {
        f"{queries}-{file.path.stem}": _Shard(queries, file, directory, stage, devices[0])
        for queries in read_manifest(directory / _CANDIDATES)["settings"]["queries"]
        for file in table_files(directory / _CANDIDATES, queries)
    }
    texts = BuildTexts(directory, verify=True)
    for queries in {shard.queries for shard in shards.values()}:
        texts.open(queries)
    free = multiprocessing.get_context("spawn").SimpleQueue()
    for name in devices:
        free.put(name)
    over_shards(
        *(_score_shard, shards, stage, len(devices), quiet, take_device, free),
        engine=engine,
        share=share,
    )
    return share.finish(stage)


def model_negatives_stage(
    directory: Path,
    options: NegativeOptions,
    device: str | None = None,
    rules: OverwriteRules | None = None,
) -> Stage:
    """The stage, not started. Its inputs are None while they are unfinished.

    Scores are computed in bfloat16 on a GPU and in float32 on a CPU; a finished stage of either
    dtype is taken.

    Raises:
        HarpError: no model is named, or the model or the device cannot be used.
    """
    model = _model(options)
    inputs = read_content(directory, "corpus", "graph", _CANDIDATES, needed=False)
    inputs["model"] = model_fingerprint(model)
    default = default_dtype(choose_device(device))
    stages = [
        Stage(
            directory / "model_negatives",
            {"model": model, "dtype": dtype},
            inputs,
            ("torch", "transformers", "tokenizers", "pyarrow"),
            rules=rules,
        )
        for dtype in sorted(DTYPES, key=lambda dtype: dtype != default)
    ]
    return next((stage for stage in stages if stage.is_whole), stages[0])


def check_model(options: NegativeOptions) -> None:
    """Load the model, to see that it is a cross-encoder with trained weights.

    Raises:
        HarpError: no model is named, it cannot be loaded, or its scores would be random.
    """
    _ = Scorer(_model(options), device="cpu").limit


def _model(options: NegativeOptions) -> str:
    if options.negatives_model is None:
        raise HarpError("--negatives model needs --negatives-model: name a cross-encoder")
    return options.negatives_model


@lru_cache(maxsize=1)
def _scorer(model: str, device: str, dtype: str) -> Scorer:
    """Load the model, once in a process; batches must not depend on the free memory."""
    batch_tokens = None if device == "cpu" else _BATCH_TOKENS_ON_GPU
    return Scorer(model, device=device, dtype=dtype, batch_tokens=batch_tokens)


@one_thread()
def _score_shard(shard: _Shard) -> None:
    device = own_device[0] if own_device else shard.device
    scorer = _scorer(device=device, **shard.stage.options)
    texts = BuildTexts(shard.directory, verify=False)
    shard.candidates.check(whole=True)
    ids: list[np.ndarray] = [np.zeros(0, dtype=np.int64)]
    rankings: list[Ranking] = []
    for batch in read_batches(shard.candidates.path, ["id", "pages"], _QUERIES_AT_ONCE):
        scored = _score(scorer, texts, shard.queries, batch)
        ids.append(batch.column("id").to_numpy())
        ends = np.cumsum(batch.column("pages").value_lengths().to_numpy())[:-1]
        pages = batch.column("pages").flatten().to_numpy()
        rankings += map(rank, np.split(pages, ends), np.split(scored, ends))
    name = shard.candidates.path.stem
    write_rankings(shard.stage, shard.queries, name, np.concatenate(ids), rankings, {})


def _score(scorer: Scorer, texts: BuildTexts, queries: str, batch: pa.RecordBatch) -> np.ndarray:
    """Score the pages of some queries, in the order of the table; float32 of shape (pages,)."""
    pages = batch.column("pages")
    query_texts = texts.queries(queries, batch.column("id").to_numpy())
    counts = pages.value_lengths().to_pylist()
    repeated = [text for text, count in zip(query_texts, counts, strict=True) for _ in range(count)]
    distinct, places = np.unique(pages.flatten().to_numpy(), return_inverse=True)
    documents = texts.document_texts(distinct)
    return scorer.score(repeated, [documents[place] for place in places])
