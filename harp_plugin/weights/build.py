"""Stage 3: weights of every linked sentence's words, of every link target's words, per anchor."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from tqdm import tqdm

from ..models import model_fingerprint
from ..storage import (
    MappedTable,
    Stage,
    open_table,
    parquet_files,
    read_manifest,
    shard_map,
    write_table,
)
from .attention import AttentionWeigher, default_dtype, find_device
from .options import WeightOptions
from .texts import WeighedTexts
from .tokens import Span, TokenisedTexts, ragged

_OFFSETS = pa.list_(pa.uint16())
_WEIGHTS = pa.list_(pa.float16())
TEXT_WEIGHTS = pa.schema(
    [("id", pa.int64()), ("starts", _OFFSETS), ("ends", _OFFSETS), ("weights", _WEIGHTS)]
)
TABLES = {
    "sentence_weights": TEXT_WEIGHTS,
    "page_weights": TEXT_WEIGHTS,
    "anchor_weights": pa.schema([("id", pa.int64()), ("weights", _WEIGHTS)]),
}
_CHUNK = 512
_LONGEST = 65535


class _Shard(NamedTuple):
    name: str
    directory: Path
    options: WeightOptions
    device: str | None
    stage: Stage


class _Chunk(NamedTuple):
    """Texts of one table.

    Attributes:
        ids: of the texts.
        texts: the texts themselves.
        anchors: ids of their anchors, one text after the other.
        spans: of the anchors in each text.
    """

    ids: np.ndarray
    texts: list[str]
    anchors: np.ndarray
    spans: list[list[Span]] | None


def build_weights(
    directory: Path,
    options: WeightOptions,
    *,
    device: str | None = None,
    workers: int = 1,
    quiet: bool = False,
) -> dict[str, Any]:
    """Weigh the texts of a corpus, shard by shard.

    On a CPU every worker computes with one thread, so that the bytes do not depend on their number;
    on GPUs there is one worker for each.

    Args:
        directory: build folder with finished corpus and graph stages.
        options: model and units.
        device: such as ``cpu`` or ``cuda:1``; ``cuda`` is all GPUs; None takes GPUs where there
            are any.
        workers: processes on a CPU.
        quiet: no progress bar.

    Returns:
        The stage's manifest; its ``heads`` is the model's number of attention heads.

    Raises:
        HarpError: the model cannot be loaded, or an earlier stage is unfinished.
    """
    inputs = {
        "corpus": read_manifest(directory / "corpus")["fingerprint"],
        "graph": read_manifest(directory / "graph")["fingerprint"],
        "model": model_fingerprint(options.model),
    }
    packages = ("torch", "transformers", "pyarrow")
    options = replace(options, dtype=options.dtype or default_dtype(find_device(device)))
    stage = Stage(directory / "weights", asdict(options), inputs, packages)
    if stage.finished:
        return read_manifest(stage.folder)
    weigher = load_weigher(options, device)
    devices = worker_devices(weigher.device, workers)
    stage.start()
    _graph_tables(directory)
    names = [path.stem for path in parquet_files(directory / "corpus" / "pages")]
    todo = [
        _Shard(name, directory, options, device, stage)
        for name in names
        if not stage.shard_done(name)
    ]
    with tqdm(total=len(names), unit="shard", desc="weights", disable=quiet) as bar:
        bar.update(len(names) - len(todo))
        free = multiprocessing.get_context("spawn").SimpleQueue()
        for name in devices:
            free.put(name)
        workers = min(len(devices), len(todo))
        for _ in shard_map(_write_shard, todo, workers, _take_device, free):
            bar.update()
    return stage.finish(heads=weigher.heads)


@lru_cache(maxsize=1)
def _loaded(**options: Any) -> AttentionWeigher:
    return AttentionWeigher(**options)


def load_weigher(options: WeightOptions, device: str | None) -> AttentionWeigher:
    """The model that weighs, loaded once a process."""
    names = ("model", "batch_tokens", "unit", "anchor_row", "dtype")
    return _loaded(device=device, **{name: getattr(options, name) for name in names})


def worker_devices(device: torch.device, workers: int) -> list[str]:
    """The device of each worker process: every GPU once, the CPU ``workers`` times."""
    if device.type != "cuda":
        return [str(device)] * workers
    if device.index is not None:
        return [str(device)]
    return [f"cuda:{number}" for number in range(torch.cuda.device_count())]


_own_device: list[str] = []


def _take_device(free) -> None:
    """Give this worker process a device of its own."""
    _own_device.append(free.get())


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread, as every worker does, and leave the process as it was."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _graph_tables(directory: Path) -> dict[str, MappedTable]:
    names = ("anchors", "sentence_anchors", "documents")
    return {name: open_table(directory, "graph", name) for name in names}


@one_thread()
def _write_shard(shard: _Shard) -> None:
    device = _own_device[0] if _own_device else shard.device
    weigher = load_weigher(shard.options, device)
    tables = _graph_tables(shard.directory)
    corpus, file = shard.directory / "corpus", f"{shard.name}.parquet"
    drops: Counter[str] = Counter()
    batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in TABLES}
    for chunk, weighed in _weighed(weigher, _sentences(corpus / "sentences" / file, tables)):
        drops["sentence cut at the model's limit"] += int(weighed.cut.sum())
        drops["anchor beyond the model's limit"] += int((~weighed.known).sum())
        batches["sentence_weights"].append(_text_batch(chunk.ids, weighed))
        batches["anchor_weights"].append(_anchor_batch(chunk.anchors, weighed))
    for chunk, weighed in _weighed(weigher, _leads(corpus / "pages" / file, tables)):
        drops["page cut at the model's limit"] += int(weighed.cut.sum())
        batches["page_weights"].append(_text_batch(chunk.ids, weighed))
    counts = {
        name: write_table(shard.stage.folder / name / file, schema, batches[name])
        for name, schema in TABLES.items()
    }
    shard.stage.finish_shard(shard.name, counts, +drops)


def _weighed(
    weigher: AttentionWeigher, chunks: Iterable[_Chunk]
) -> Iterator[tuple[_Chunk, WeighedTexts]]:
    """Weigh chunks, while a thread reads and tokenises the next."""
    waiting = iter(chunks)

    def prepare() -> tuple[_Chunk, TokenisedTexts] | None:
        chunk = next(waiting, None)
        return None if chunk is None else (chunk, weigher.tokenise(chunk.texts, chunk.spans))

    with ThreadPoolExecutor(1) as ahead:
        coming = ahead.submit(prepare)
        while (prepared := coming.result()) is not None:
            coming = ahead.submit(prepare)
            chunk, texts = prepared
            yield chunk, weigher.weigh_tokenised(texts)


def _sentences(path: Path, tables: dict[str, MappedTable]) -> Iterator[_Chunk]:
    for batch in pq.ParquetFile(path).iter_batches(_CHUNK, columns=["id", "text"]):
        rows = tables["sentence_anchors"].rows(batch.column("id").to_numpy())
        batch, rows = batch.filter(pa.array(rows >= 0)), rows[rows >= 0]
        groups = tables["sentence_anchors"].take(rows, "anchors")
        anchors = groups.flatten().to_numpy()
        places = tables["anchors"].rows(anchors)
        ends = (tables["anchors"].take(places, name).to_pylist() for name in ("start", "end"))
        spans = iter(zip(*ends, strict=True))
        counts = groups.value_lengths().to_pylist()
        texts = batch.column("text").to_pylist()
        each = [list(islice(spans, count)) for count in counts]
        yield _Chunk(batch.column("id").to_numpy(), texts, anchors, each)


def _leads(path: Path, tables: dict[str, MappedTable]) -> Iterator[_Chunk]:
    for batch in pq.ParquetFile(path).iter_batches(_CHUNK, columns=["id", "lead"]):
        rows = tables["documents"].rows(batch.column("id").to_numpy())
        batch, rows = batch.filter(pa.array(rows >= 0)), rows[rows >= 0]
        linked = tables["documents"].take(rows, "in_links").to_numpy() > 0
        batch = batch.filter(pa.array(linked))
        ids, texts = batch.column("id").to_numpy(), batch.column("lead").to_pylist()
        yield _Chunk(ids, texts, np.zeros(0, dtype=np.int64), None)


def _text_batch(ids: np.ndarray, weighed: WeighedTexts) -> pa.RecordBatch:
    fits = weighed.spans[:, 1] <= _LONGEST
    offsets = _lists(weighed.word_starts, fits)
    lists = (
        (weighed.spans[:, 0], np.uint16),
        (weighed.spans[:, 1], np.uint16),
        (weighed.cls, np.float16),
    )
    columns = [
        pa.ListArray.from_arrays(offsets, pa.array(values[fits].astype(kind)))
        for values, kind in lists
    ]
    return pa.RecordBatch.from_arrays([pa.array(ids), *columns], schema=TEXT_WEIGHTS)


def _anchor_batch(ids: np.ndarray, weighed: WeighedTexts) -> pa.RecordBatch:
    """Rows of the anchors that are known, over the words that `_text_batch` keeps."""
    text = np.repeat(np.arange(len(weighed)), np.diff(weighed.anchor_starts))
    widths = np.diff(weighed.row_starts)
    word = ragged(weighed.word_starts[text], widths)
    kept = np.repeat(weighed.known, widths) & (weighed.spans[word, 1] <= _LONGEST)
    known = np.append(weighed.known, True)
    offsets = pa.array(_lists(weighed.row_starts, kept).to_numpy()[known])
    values = pa.array(weighed.rows[kept].astype(np.float16))
    column = pa.ListArray.from_arrays(offsets, values)
    schema = TABLES["anchor_weights"]
    return pa.RecordBatch.from_arrays([pa.array(ids[weighed.known]), column], schema=schema)


def _lists(starts: np.ndarray, kept: np.ndarray) -> pa.Array:
    """Offsets of lists of which only some elements are kept."""
    before = np.concatenate([[0], np.cumsum(kept)])
    return pa.array(before[starts].astype(np.int32))
