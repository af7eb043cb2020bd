"""Stage 3: weights of every linked sentence's words, of every link target's words, per anchor."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from tqdm import tqdm

from ..engine import PACKAGES, EngineOptions, Step, run_steps
from ..files.made_from import OverwriteRules
from ..models.loading import model_fingerprint
from ..storage import (
    ShardFile,
    Stage,
    read_batches,
    read_content,
    read_manifest,
    shard_map,
    table_files,
    write_table,
)
from .attention import AttentionWeigher, default_dtype, find_device
from .chunks import Chunk, Weigher, graph_tables, lead_chunks, sentence_chunks, weigh_chunks
from .collection import Collection, WordCounts, summed_counts, words_at
from .contrast import Contrast, term_distributions
from .language_model import LanguageModel, find_words
from .options import DTYPES, WeightOptions
from .tables import (
    LONGEST,
    PAGE_ATTENTION,
    TABLES,
    anchor_batch,
    attention_batch,
    beyond_storage,
    read_attention,
    text_batch,
)
from .texts import WeighedTexts
from .workers import load_weigher, one_thread, own_device, take_device, worker_devices

_COUNTED = "counted"
_COLLECTION = "collection"
_PAGE_ATTENTION = "page_attention"
_BEYOND = f"with words beyond {LONGEST:,} characters, left out"


class _Shard(NamedTuple):
    name: str
    pages: ShardFile
    sentences: ShardFile
    directory: Path
    options: WeightOptions
    device: str | None
    stage: Stage
    collection: Collection | None = None


def build_weights(
    directory: Path,
    options: WeightOptions,
    engine: EngineOptions | None = None,
    *,
    device: str | None = None,
    workers: int = 1,
    quiet: bool = False,
    rules: OverwriteRules | None = None,
) -> dict[str, Any]:
    """Weigh the texts of a corpus, shard by shard.

    On a CPU every worker computes with one thread, so that the bytes do not depend on their number;
    on GPUs there is one worker for each. The language model and the contrast first count the words
    of all linked documents' leads, which are their collection.

    Args:
        directory: build folder with finished corpus and graph stages.
        options: weighting, model and units.
        engine: adds up the counts of words.
        device: such as ``cpu`` or ``cuda:1``; ``cuda`` is all GPUs; None takes GPUs where there
            are any.
        workers: processes on a CPU.
        quiet: no progress bar.
        rules: what may be done with other work in the folder.

    Returns:
        The stage's manifest; its ``heads`` is the model's number of attention heads.

    Raises:
        HarpError: the model cannot be loaded, an earlier stage is unfinished or damaged, or the
            folder holds other work or other files.
    """
    read_content(directory, "corpus", "graph")
    stage = weights_stage(directory, options, device, rules)
    if stage.is_finished():
        stage.remove_temporary_tables()
        return read_manifest(stage.folder)
    options = replace(options, dtype=stage.options.get("dtype"))
    heads, devices = LanguageModel.heads, ["cpu"] * workers
    if options.needs_model:
        weigher = load_weigher(options, device)
        heads, devices = weigher.heads, worker_devices(weigher.device, workers)
    stage.start()
    graph_tables(directory, verify=True)
    files = zip(
        *(table_files(directory / "corpus", t) for t in ("pages", "sentences")), strict=True
    )
    shards = [
        _Shard(pages.path.stem, pages, sentences, directory, options, device, stage)
        for pages, sentences in files
    ]
    more: dict[str, Any] = {}
    if options.weighting != "attention":
        _over_shards(_count_shard, shards, devices, "words", quiet)
        collection = _collection(directory, stage, engine, workers)
        shards = [shard._replace(collection=collection) for shard in shards]
        more["collection"] = {"texts": collection.texts, "words": collection.sums["occurrences"]}
        if options.weighting == "language-model":
            more["collection"]["dirichlet_mu"] = _mu(options, collection)
    _over_shards(_write_shard, shards, devices, "weights", quiet)
    return stage.finish(heads=heads, **more)


def weights_stage(
    directory: Path,
    options: WeightOptions,
    device: str | None = None,
    rules: OverwriteRules | None = None,
) -> Stage:
    """The stage of these options, not started; inputs are None while they are unfinished.

    Where no dtype is named, finished weights of any are as good: weights from a GPU are not made
    again where there is none.

    Raises:
        HarpError: the model or the device cannot be used.
    """
    inputs = read_content(directory, "corpus", "graph", needed=False)
    packages: tuple[str, ...] = ("pyarrow",)
    if options.needs_model:
        inputs["model"] = model_fingerprint(options.model)
        packages = ("torch", "transformers", "tokenizers", "pyarrow")
    if options.weighting != "attention":
        packages = (*packages, *PACKAGES)
    stages = [
        Stage(
            directory / "weights",
            each.recorded(),
            inputs,
            packages,
            rules=rules,
            temporary=(_COUNTED, _PAGE_ATTENTION),
        )
        for each in _with_dtype(options, device)
    ]
    return next((stage for stage in stages if stage.finished), stages[0])


def _with_dtype(options: WeightOptions, device: str | None) -> list[WeightOptions]:
    """The options to weigh by; then those of finished weights that are as good."""
    if not options.needs_model or options.dtype:
        return [options]
    first = default_dtype(find_device(device))
    return [replace(options, dtype=each) for each in sorted(DTYPES, key=lambda d: d != first)]


def _over_shards(
    fn: Callable[[_Shard], None], shards: list[_Shard], devices: list[str], what: str, quiet: bool
) -> None:
    """Apply ``fn`` to the shards that it has not finished."""
    todo = [shard for shard in shards if not shard.stage.shard_done(_mark(what, shard))]
    with tqdm(total=len(shards), unit="shard", desc=what, disable=quiet) as bar:
        bar.update(len(shards) - len(todo))
        free = multiprocessing.get_context("spawn").SimpleQueue()
        for name in devices:
            free.put(name)
        workers = min(len(devices), len(todo))
        for _ in shard_map(fn, todo, workers, take_device, free):
            bar.update()


def _mark(what: str, shard: _Shard) -> str:
    """Under which name a finished shard is known."""
    return shard.name if what == "weights" else f"{what}-{shard.name}"


def _collection(
    directory: Path, stage: Stage, engine: EngineOptions | None, workers: int
) -> Collection:
    """Add up what the shards counted, once."""
    if not stage.shard_done(_COLLECTION):
        step = Step(_COLLECTION, summed_counts, order=("id", "word"))
        run_steps(stage, {_COUNTED: stage.folder / _COUNTED}, [step], engine, workers=workers)
    cache = directory / "mapped" / "weights-collection"
    return Collection.open(stage.table(_COLLECTION), stage.table(_COUNTED), cache)


def _mu(options: WeightOptions, collection: Collection) -> float:
    return collection.mean_length if options.dirichlet_mu is None else options.dirichlet_mu


def _attention(shard: _Shard) -> AttentionWeigher:
    return load_weigher(shard.options, own_device[0] if own_device else shard.device)


def _weigher(shard: _Shard) -> Weigher:
    options, collection = shard.options, shard.collection
    if collection is None:
        return _attention(shard)
    if options.weighting == "language-model":
        background = partial(collection.background, counted=options.background or "occurrences")
        return LanguageModel(_mu(options, collection), background)
    return Contrast(_attention(shard), options.saturation or 0.01, collection.surprise)


@one_thread()
def _count_shard(shard: _Shard) -> None:
    """Count the words of leads; keep the attention to them where it is weighed for that."""
    file = f"{shard.name}.parquet"
    counts, batches = WordCounts(), []
    drops: Counter[str] = Counter()
    files: list[ShardFile] = []
    leads = lead_chunks(shard.pages, graph_tables(shard.directory, verify=False))
    if shard.options.weighting == "language-model":
        for chunk in leads:
            counts.add(len(chunk.texts), find_words(chunk.texts).words)
    else:
        saturation = shard.options.saturation or 0.01
        for chunk, weighed in weigh_chunks(_attention(shard), leads):
            words = words_at(chunk.texts, weighed.spans, weighed.word_starts)
            found = term_distributions(weighed.cls, words, saturation)
            pooled = shard.options.random_distribution == "pooled"
            counts.add(len(weighed), words, found.saturated if pooled else found.probability)
            batches.append(attention_batch(chunk.ids, weighed))
            drops[f"page {_BEYOND}"] += int(beyond_storage(weighed).sum())
        kept = write_table(shard.stage.folder / _PAGE_ATTENTION / file, PAGE_ATTENTION, batches)
        files.append(kept)
    files.append(counts.write(shard.stage.folder / _COUNTED / file))
    shard.stage.finish_shard(_mark("words", shard), {}, +drops, files)


@one_thread()
def _write_shard(shard: _Shard) -> None:
    weigher = _weigher(shard)
    tables = graph_tables(shard.directory, verify=False)
    file = f"{shard.name}.parquet"
    limit = "the model's limit" if shard.options.needs_model else f"{LONGEST:,} characters"
    drops: Counter[str] = Counter()
    batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in TABLES}
    for chunk, weighed in weigh_chunks(weigher, sentence_chunks(shard.sentences, tables)):
        drops[f"sentence cut at {limit}"] += int(weighed.cut.sum())
        drops[f"sentence {_BEYOND}"] += int(beyond_storage(weighed).sum())
        in_cut = np.repeat(weighed.cut, np.diff(weighed.anchor_starts))
        drops[f"anchor beyond {limit}"] += int((~weighed.known & in_cut).sum())
        drops["anchor without a token"] += int((~weighed.known & ~in_cut).sum())
        batches["sentence_weights"].append(text_batch(chunk.ids, weighed))
        batches["anchor_weights"].append(anchor_batch(chunk.anchors, weighed))
    leads = lead_chunks(shard.pages, tables)
    pages = (
        _contrasted(weigher, leads, shard.stage.folder / _PAGE_ATTENTION / file)
        if isinstance(weigher, Contrast)
        else weigh_chunks(weigher, leads)
    )
    for chunk, weighed in pages:
        drops[f"page cut at {limit}"] += int(weighed.cut.sum())
        drops[f"page {_BEYOND}"] += int(beyond_storage(weighed).sum())
        batches["page_weights"].append(text_batch(chunk.ids, weighed))
    files = {
        name: write_table(shard.stage.folder / name / file, schema, batches[name])
        for name, schema in TABLES.items()
    }
    rows = {name: written.rows for name, written in files.items()}
    shard.stage.finish_shard(shard.name, rows, +drops, files.values())


def _contrasted(
    contrast: Contrast, chunks: Iterable[Chunk], attention: Path
) -> Iterator[tuple[Chunk, WeighedTexts]]:
    """Contrast leads by the attention that was kept when their words were counted."""
    kept, first = pa.Table.from_batches(read_batches(attention), PAGE_ATTENTION), 0
    for chunk in chunks:
        weighed = read_attention(kept.slice(first, len(chunk.texts)))
        first += len(chunk.texts)
        words = words_at(chunk.texts, weighed.spans, weighed.word_starts)
        yield chunk, contrast.contrast(weighed, words)
