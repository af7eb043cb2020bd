"""Weights of every linked sentence's words, of every link target's words, per anchor."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from tqdm import tqdm

from ..models.devices import (
    default_dtype,
    device_queue,
    one_thread,
    own_device,
    take_device,
    worker_devices,
)
from ..models.loading import choose_device, model_fingerprint
from ..work.build_stage import BuildRequest, BuildStage, StageOptions, finish_shards
from ..work.manifest import table_files
from ..work.parquet import ShardFile, write_table
from ..work.stage import Stage
from .attention import AttentionWeigher
from .chunks import Chunk, graph_tables, lead_chunks, sentence_chunks, weigh_chunks
from .encoders import NO_FAST_PATH
from .options import DTYPES, WeightOptions
from .weighed_texts import TABLES, WeighedTexts, anchor_batch, beyond_storage, text_batch
from .words import LONGEST

__all__ = ["build_weights"]

_BEYOND = f"with words beyond {LONGEST:,} characters, left out"


class _Shard(NamedTuple):
    name: str
    pages: ShardFile
    sentences: ShardFile
    directory: Path
    options: WeightOptions
    device: str | None
    stage: Stage
    quiet: bool


def _check(request: BuildRequest) -> None:
    choose_device(request.worker_device)


def _options(request: BuildRequest) -> StageOptions:
    """Tell what decides the weights.

    Where the options name no dtype, finished weights of any dtype are taken: weights from a GPU
    are not computed again where there is no GPU.
    """
    options = request.of(WeightOptions)
    inputs = {"model": model_fingerprint(options.model)}
    first, *others = map(asdict, _with_dtypes(options, request.worker_device))
    return StageOptions(first, inputs, ("torch", "transformers", "tokenizers", "pyarrow"), others)


def _weigh(stage: Stage, request: BuildRequest) -> dict[str, Any] | None:
    """Weigh the texts of a corpus, shard by shard.

    On a CPU every worker computes with one thread, so that the bytes do not depend on their number;
    on GPUs there is one worker for each. The manifest's ``heads`` is the model's number of
    attention heads.
    """
    directory, device = request.directory, request.worker_device
    options = replace(request.of(WeightOptions), **stage.options)
    weigher = _load_weigher(options, device)
    devices = worker_devices(weigher.device, request.workers)
    graph_tables(directory)
    files = zip(
        *(table_files(directory / "corpus", t) for t in ("pages", "sentences")), strict=True
    )
    shards = {
        pages.path.stem: _Shard(
            pages.path.stem, pages, sentences, directory, options, device, stage, request.quiet
        )
        for pages, sentences in files
    }
    are_finished = finish_shards(
        stage,
        request,
        _write_shard,
        shards,
        workers=len(devices),
        engine=request.engine,
        begin=partial(_begin, device_queue(devices)),
    )
    return {"heads": weigher.heads} if are_finished else None


def _with_dtypes(options: WeightOptions, device: str | None) -> list[WeightOptions]:
    """Return the options with the dtype to weigh by, then those of other acceptable weights."""
    if options.dtype:
        return [options]
    default = default_dtype(choose_device(device))
    return [replace(options, dtype=dtype) for dtype in sorted(DTYPES, key=lambda d: d != default)]


def _begin(devices: Any) -> None:
    """Begin a worker, which leaves warnings to the main process."""
    take_device(devices)
    warnings.filterwarnings("ignore", f".*{NO_FAST_PATH}", UserWarning)


_loaded = lru_cache(maxsize=1)(AttentionWeigher)


def _load_weigher(options: WeightOptions, device: str | None) -> AttentionWeigher:
    """Return the model that weighs. It is loaded once in a process."""
    names = ("model", "batch_tokens", "unit", "anchor_row", "dtype")
    return _loaded(device=device, **{name: getattr(options, name) for name in names})


def _weighed(
    shard: _Shard, weigher: AttentionWeigher, chunks: Iterable[Chunk]
) -> Iterator[tuple[Chunk, WeighedTexts]]:
    """Weigh chunks, with a bar of texts where this process is not one of several."""
    is_silent = shard.quiet or bool(own_device)
    with tqdm(desc=shard.name, unit="text", leave=False, disable=is_silent) as bar:
        for chunk, weighed in weigh_chunks(weigher, chunks):
            yield chunk, weighed
            bar.update(len(chunk.texts))


@one_thread()
def _write_shard(shard: _Shard) -> None:
    weigher = _load_weigher(shard.options, own_device[0] if own_device else shard.device)
    tables = graph_tables(shard.directory)
    file = f"{shard.name}.parquet"
    drops: Counter[str] = Counter()
    batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in TABLES}
    for chunk, weighed in _weighed(shard, weigher, sentence_chunks(shard.sentences, tables)):
        words = weighed.words
        drops["sentence cut at the model's limit"] += int(words.cut.sum())
        drops[f"sentence {_BEYOND}"] += int(beyond_storage(weighed).sum())
        outside, in_cut = ~words.anchor_inside, words.cut[words.anchor_texts]
        drops["anchor beyond the model's limit"] += int((outside & in_cut).sum())
        drops["anchor without a token"] += int((outside & ~in_cut).sum())
        batches["sentence_weights"].append(text_batch(chunk.ids, weighed))
        batches["anchor_weights"].append(anchor_batch(chunk.anchors, weighed))
    for chunk, weighed in _weighed(shard, weigher, lead_chunks(shard.pages, tables)):
        drops["page cut at the model's limit"] += int(weighed.words.cut.sum())
        drops[f"page {_BEYOND}"] += int(beyond_storage(weighed).sum())
        batches["page_weights"].append(text_batch(chunk.ids, weighed))
    files = {
        name: write_table(shard.stage.folder / name / file, schema, batches[name])
        for name, schema in TABLES.items()
    }
    rows = {name: written.rows for name, written in files.items()}
    shard.stage.finish_shard(shard.name, rows, +drops, files.values())


build_weights = BuildStage(
    "weights", ("corpus", "graph"), _options, _weigh, _check, can_be_shared=True
)
