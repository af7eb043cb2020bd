"""Weights of every linked sentence's words, of every link target's words, per anchor."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from tqdm import tqdm

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
from ..work.build_stage import BuildRequest, BuildStage, StageOptions, finish_shards
from ..work.manifest import table_files
from ..work.parquet import ShardFile, read_batches, write_table
from ..work.sql.steps import PACKAGES
from ..work.stage import Stage
from .attention import AttentionWeigher
from .chunks import Chunk, Weigher, graph_tables, lead_chunks, sentence_chunks, weigh_chunks
from .collection import COLLECTION, COUNTED, Collection, WordCounts, add_up_counts
from .contrast import Contrast, attention_to_words, saturated, shares_in_texts
from .encoders import NO_FAST_PATH
from .language_model import LanguageModelWeigher
from .options import DTYPES, WeightOptions
from .weighed_texts import (
    PAGE_ATTENTION,
    TABLES,
    WeighedTexts,
    anchor_batch,
    attention_batch,
    beyond_storage,
    read_attention,
    text_batch,
)
from .words import LONGEST, find_distinct_words

__all__ = ["build_weights"]

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
    quiet: bool
    collection: Collection | None = None


def _check(request: BuildRequest) -> None:
    """Check that the device is there, and that hosts do not share what counts words first."""
    options = request.of(WeightOptions)
    if options.needs_model:
        choose_device(request.worker_device)
    if request.world > 1 and options.weighting != "attention":
        raise HarpError(
            f"--weighting {options.weighting} counts the words of all pages first: let one host do "
            "it, without --rank and --world"
        )


def _options(request: BuildRequest) -> StageOptions:
    """Tell what decides the weights.

    Where the options name no dtype, finished weights of any dtype are taken: weights from a GPU
    are not computed again where there is no GPU.
    """
    options = request.of(WeightOptions)
    inputs: dict[str, str] = {}
    packages: tuple[str, ...] = ("pyarrow",)
    if options.needs_model:
        inputs["model"] = model_fingerprint(options.model)
        packages = ("torch", "transformers", "tokenizers", "pyarrow")
    if options.weighting != "attention":
        packages = (*packages, *PACKAGES)
    first, *others = (o.recorded() for o in _with_dtypes(options, request.worker_device))
    return StageOptions(first, inputs, packages, others)


def _weigh(stage: Stage, request: BuildRequest) -> dict[str, Any] | None:
    """Weigh the texts of a corpus, shard by shard.

    On a CPU every worker computes with one thread, so that the bytes do not depend on their number;
    on GPUs there is one worker for each. The language model and the contrast first count words:
    their collection is the leads of the documents that links lead to, which are all the leads that
    are weighed (the stage ``words`` counts the leads of all documents). The manifest's ``heads`` is
    the model's number of attention heads.
    """
    directory, device = request.directory, request.worker_device
    options = replace(request.of(WeightOptions), **stage.options)
    heads, devices = LanguageModelWeigher.heads, ["cpu"] * request.workers
    if options.needs_model:
        weigher = _load_weigher(options, device)
        heads, devices = weigher.heads, worker_devices(weigher.device, request.workers)
    graph_tables(directory)
    files = zip(
        *(table_files(directory / "corpus", t) for t in ("pages", "sentences")), strict=True
    )
    shards = [
        _Shard(pages.path.stem, pages, sentences, directory, options, device, stage, request.quiet)
        for pages, sentences in files
    ]
    more: dict[str, Any] = {"heads": heads}

    def over_shards(fn: Callable[[_Shard], None], shards: dict[str, _Shard]) -> bool:
        begin = partial(_begin, device_queue(devices))
        workers, engine = len(devices), request.engine
        return finish_shards(
            stage, request, fn, shards, workers=workers, engine=engine, begin=begin
        )

    if options.weighting != "attention":
        over_shards(_count_shard, {f"words-{shard.name}": shard for shard in shards})
        texts = add_up_counts(stage, request.engine, request.workers)
        cache = directory / "mapped" / "weights-collection"
        collection = Collection.open(stage.table(COLLECTION), texts, cache)
        shards = [shard._replace(collection=collection) for shard in shards]
        more["collection"] = {"texts": collection.texts, "words": collection.sums["occurrences"]}
        if options.weighting == "language-model":
            more["collection"]["dirichlet_mu"] = _mu(options, collection)
    are_finished = over_shards(_write_shard, {shard.name: shard for shard in shards})
    return more if are_finished else None


def _with_dtypes(options: WeightOptions, device: str | None) -> list[WeightOptions]:
    """Return the options with the dtype to weigh by, then those of other acceptable weights."""
    if not options.needs_model or options.dtype:
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
    shard: _Shard, weigher: Weigher, chunks: Iterable[Chunk]
) -> Iterator[tuple[Chunk, WeighedTexts]]:
    """Weigh chunks, with a bar of texts where this process is not one of several."""
    is_silent = shard.quiet or bool(own_device)
    with tqdm(desc=shard.name, unit="text", leave=False, disable=is_silent) as bar:
        for chunk, weighed in weigh_chunks(weigher, chunks):
            yield chunk, weighed
            bar.update(len(chunk.texts))


def _mu(options: WeightOptions, collection: Collection) -> float:
    return collection.mean_length if options.dirichlet_mu is None else options.dirichlet_mu


def _attention(shard: _Shard) -> AttentionWeigher:
    return _load_weigher(shard.options, own_device[0] if own_device else shard.device)


def _weigher(shard: _Shard) -> Weigher:
    options, collection = shard.options, shard.collection
    if collection is None:
        return _attention(shard)
    if options.weighting == "language-model":
        background = partial(collection.background, counted=options.background)
        return LanguageModelWeigher(_mu(options, collection), background)
    return Contrast(_attention(shard), options.saturation, collection.surprise)


@one_thread()
def _count_shard(shard: _Shard) -> None:
    """Count the words of leads; for the contrast (B-PROP), with their probability by attention.

    This attention is kept.
    """
    options, file = shard.options, f"{shard.name}.parquet"
    leads = lead_chunks(shard.pages, graph_tables(shard.directory))
    counts, files = WordCounts(), list[ShardFile]()
    drops: Counter[str] = Counter()
    if options.weighting == "language-model":
        for chunk in leads:
            counts.add_texts(chunk.texts)
    else:
        batches = []
        for chunk, weighed in _weighed(shard, _attention(shard), leads):
            words = find_distinct_words(chunk.texts, weighed.words)
            attention = attention_to_words(weighed.cls, words)
            mass = saturated(attention, options.saturation)
            if options.random_distribution != "pooled":
                mass = shares_in_texts(mass, words)
            counts.add(len(weighed), words, mass)
            batches.append(attention_batch(chunk.ids, weighed))
            drops[f"page {_BEYOND}"] += int(beyond_storage(weighed).sum())
        kept = shard.stage.folder / _PAGE_ATTENTION / file
        files.append(write_table(kept, PAGE_ATTENTION, batches))
    files.append(counts.write(shard.stage.folder / COUNTED / file))
    shard.stage.finish_shard(f"words-{shard.name}", {}, +drops, files)


@one_thread()
def _write_shard(shard: _Shard) -> None:
    weigher = _weigher(shard)
    tables = graph_tables(shard.directory)
    file = f"{shard.name}.parquet"
    limit = "the model's limit" if shard.options.needs_model else f"{LONGEST:,} characters"
    drops: Counter[str] = Counter()
    batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in TABLES}
    for chunk, weighed in _weighed(shard, weigher, sentence_chunks(shard.sentences, tables)):
        words = weighed.words
        drops[f"sentence cut at {limit}"] += int(words.cut.sum())
        drops[f"sentence {_BEYOND}"] += int(beyond_storage(weighed).sum())
        outside, in_cut = ~words.anchor_inside, words.cut[words.anchor_texts]
        drops[f"anchor beyond {limit}"] += int((outside & in_cut).sum())
        drops["anchor without a token"] += int((outside & ~in_cut).sum())
        batches["sentence_weights"].append(text_batch(chunk.ids, weighed))
        batches["anchor_weights"].append(anchor_batch(chunk.anchors, weighed))
    leads = lead_chunks(shard.pages, tables)
    pages = (
        _contrasted(weigher, leads, shard.stage.folder / _PAGE_ATTENTION / file)
        if isinstance(weigher, Contrast)
        else _weighed(shard, weigher, leads)
    )
    for chunk, weighed in pages:
        drops[f"page cut at {limit}"] += int(weighed.words.cut.sum())
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
        words = find_distinct_words(chunk.texts, weighed.words)
        yield chunk, contrast.contrast(weighed, words)


build_weights = BuildStage(
    "weights",
    ("corpus", "graph"),
    _options,
    _weigh,
    _check,
    temporary=(COUNTED, _PAGE_ATTENTION),
    can_be_shared=True,
)
