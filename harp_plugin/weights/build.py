"""Stage 3: weights of every linked sentence's words, of every link target's words, per anchor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
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
from .options import WeightOptions

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


def build_weights(
    directory: Path,
    options: WeightOptions,
    *,
    device: str | None = None,
    workers: int = 1,
    quiet: bool = False,
) -> dict[str, Any]:
    """Weigh the texts of a corpus, shard by shard.

    Every worker computes with one thread, so that the bytes do not depend on their number.

    Args:
        directory: build folder with finished corpus and graph stages.
        options: model and units.
        device: such as ``cuda``; None takes a GPU where there is one.
        workers: processes; on a GPU always 1.
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
    stage = Stage(directory / "weights", asdict(options), inputs, packages)
    if stage.finished:
        return read_manifest(stage.folder)
    weigher = load_weigher(options, device)
    if weigher.device.type != "cpu":
        workers = 1
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
        for _ in shard_map(_write_shard, todo, min(workers, len(todo))):
            bar.update()
    return stage.finish(heads=weigher.heads)


@lru_cache(maxsize=1)
def _loaded(model: str, device: str | None, batch_tokens: int, unit: str, anchor_row: str):
    from .attention import AttentionWeigher

    return AttentionWeigher(
        model, device=device, batch_tokens=batch_tokens, unit=unit, anchor_row=anchor_row
    )


def load_weigher(options: WeightOptions, device: str | None):
    """The model that weighs, loaded once a process."""
    unit, anchor_row = str(options.unit), str(options.anchor_row)
    return _loaded(options.model, device, options.batch_tokens, unit, anchor_row)


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread, as every worker does, and leave the process as it was."""
    import torch

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
    weigher = load_weigher(shard.options, shard.device)
    tables = _graph_tables(shard.directory)
    corpus = shard.directory / "corpus"
    drops: Counter[str] = Counter()
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    for sentences in _chunks(corpus / "sentences" / f"{shard.name}.parquet", ["id", "text"]):
        _weigh_sentences(weigher, tables, sentences, rows, drops)
    for pages in _chunks(corpus / "pages" / f"{shard.name}.parquet", ["id", "lead"]):
        linked = [
            (id, lead)
            for id, lead in pages
            if id in tables["documents"] and tables["documents"].get(id, "in_links") > 0
        ]
        weights = weigher.weigh([lead for _, lead in linked]) if linked else []
        for (id, _), weighed in zip(linked, weights, strict=True):
            drops["page cut at the model's limit"] += weighed.cut
            rows["page_weights"].append(_text_row(id, weighed.spans, weighed.cls))
    counts = {}
    for name, schema in TABLES.items():
        batch = pa.RecordBatch.from_pylist(rows[name], schema=schema)
        path = shard.stage.folder / name / f"{shard.name}.parquet"
        counts[name] = write_table(path, schema, [batch])
    shard.stage.finish_shard(shard.name, counts, +drops)


def _chunks(path: Path, columns: list[str]) -> Iterable[list[tuple[int, str]]]:
    for batch in pq.ParquetFile(path).iter_batches(_CHUNK, columns=columns):
        yield list(zip(*(batch.column(name).to_pylist() for name in columns), strict=True))


def _weigh_sentences(weigher, tables, sentences, rows, drops: Counter[str]) -> None:
    linked = [(id, text) for id, text in sentences if id in tables["sentence_anchors"]]
    if not linked:
        return
    anchors = [tables["sentence_anchors"].get(id, "anchors") for id, _ in linked]
    spans = [
        [(tables["anchors"].get(a, "start"), tables["anchors"].get(a, "end")) for a in group]
        for group in anchors
    ]
    weights = weigher.weigh([text for _, text in linked], spans)
    for (id, _), group, weighed in zip(linked, anchors, weights, strict=True):
        drops["sentence cut at the model's limit"] += weighed.cut
        rows["sentence_weights"].append(_text_row(id, weighed.spans, weighed.cls))
        for anchor, row in zip(group, weighed.anchors, strict=True):
            if np.isnan(row).any():
                drops["anchor beyond the model's limit"] += 1
            else:
                fine = row[: _fitting(weighed.spans)].astype(np.float16)
                rows["anchor_weights"].append({"id": anchor, "weights": fine})


def _fitting(spans: np.ndarray) -> int:
    return int(np.count_nonzero(spans[:, 1] <= _LONGEST)) if len(spans) else 0


def _text_row(id: int, spans: np.ndarray, weights: np.ndarray) -> dict[str, Any]:
    fitting = _fitting(spans)
    return {
        "id": id,
        "starts": spans[:fitting, 0].astype(np.uint16),
        "ends": spans[:fitting, 1].astype(np.uint16),
        "weights": weights[:fitting].astype(np.float16),
    }
