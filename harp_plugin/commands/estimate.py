"""`harp build --dry-run`: what a build will give, need and take, estimated from a sample."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ..errors import HarpError
from ..negatives.options import NegativeOptions
from ..work.manifest import read_manifest
from ..work.parquet import read_table, table_bytes
from ..work.sql.options import EngineOptions
from ..work.temporary import temporary_folder

if TYPE_CHECKING:
    from ..corpus.options import CorpusOptions
    from ..graph import GraphOptions
    from ..weights.options import WeightOptions
    from .build import BuildOptions
    from .sample_build import SampleBuild

__all__ = ["Estimate", "estimate", "report"]

_WEIGHED_TEXTS = 64
_AT_LEAST = ("qdm",)
# Measured on builds (benchmarks/RESULTS.md): relational work, and rows whose size hardly varies.
_SECONDS_PER_LINK = 6e-6
_WORD_WEIGHT_BYTES = 4
_MAPPED_ROW_BYTES = 100
_SECONDS_PER_QUERY = {"anchor_texts": 1.6e-4, "sentences": 1e-3, "pages": 1.6e-3}
"""CPU time of BM25 over 360,000 documents; it grows by the power 0.6 of their number."""
_MEASURED_DOCUMENTS = 360_000
_RANKED_PAGE_BYTES = 12


@dataclass(frozen=True)
class Estimate:
    """What to expect of a build.

    Attributes:
        fraction: the share of the sources that was read.
        rows: the numbers of pages, links and so on, and of the examples of each task.
        seconds: how long each stage takes.
        size: the bytes of the finished build.
    """

    fraction: float
    rows: dict[str, int]
    seconds: dict[str, float]
    size: int


def estimate(
    sources: Sequence[str | Path],
    options: BuildOptions,
    corpus: CorpusOptions,
    graph: GraphOptions,
    weights: WeightOptions,
    engine: EngineOptions | None = None,
    negatives: NegativeOptions | None = None,
) -> Estimate:
    """Build a sample in a temporary folder and extrapolate to the whole.

    The corpus, the link graph and the examples of the sample are built as `harp build` builds
    them. Links to pages outside of the sample resolve as often as its links into the sample let
    expect: see `harp_plugin.commands.sample_build.build_sample`. If none leads into it, the
    sample tells nothing of examples: their numbers are 0. DuckDB does this work, whatever
    ``engine`` names: a cluster need not see the temporary folder.

    The pages at the beginning of a dump are older, longer and better linked than the rest, so
    that numbers are rather too high. QDM's number is a lower bound, for more text makes more
    anchor texts ambiguous.

    Raises:
        HarpError: a source or model is missing or damaged, the sample has no page, or nothing
            comes out.
    """
    from ..corpus.sample import sample_corpus
    from .build import check
    from .sample_build import build_sample

    negatives = negatives or NegativeOptions()
    check(sources, options, weights, negatives)
    if options.sample_pages < 1:
        raise HarpError(f"--sample-pages {options.sample_pages}: give 1 or more")
    with temporary_folder("harp-dry-run-") as directory:
        sample = sample_corpus(sources, directory, corpus, options.sample_pages)
        read = read_manifest(directory / "corpus")["rows"]
        tables = sum(table_bytes(directory / "corpus" / table) for table in read)
        local = EngineOptions(memory=engine.memory) if engine else EngineOptions()
        built = build_sample(
            directory, sample.fraction, graph, options.tasks, local, options.workers
        )
        counts = {
            "pages": read["pages"],
            "redirects": read["redirects"],
            "documents": len(built.documents),
            "links": read["links"],
            "linked sentences": built.rows.get("sentence_anchors", 0),
            **{task: built.rows.get(task, 0) for task in options.tasks},
        }
        rows = {name: round(count / sample.fraction) for name, count in counts.items()}
        anchors = built.rows.get("anchors", 0) / sample.fraction
        weighed = rows["linked sentences"] + rows["documents"]
        texts = _texts(directory / "corpus", built.documents)
        seconds = {
            "corpus": sample.seconds / sample.fraction / options.workers,
            "graph, examples": rows["links"] * _SECONDS_PER_LINK,
        }
        size = (tables + built.size + sum(map(len, texts))) / sample.fraction
        size += anchors * 2 * _MAPPED_ROW_BYTES
        if "weights" in options.chosen_stages:
            rate = _texts_per_second(texts, weights, options.device)
            seconds["weights"] = weighed / rate / options.workers
            words = sum(len(text.split()) for text in texts) / max(1, len(texts))
            size += (weighed + anchors) * words * 2 * _WORD_WEIGHT_BYTES
        if "bm25_negatives" in options.chosen_stages:
            count, needed = _searches(directory, built, sample.fraction, options.tasks)
            rows["texts searched by"] = count
            seconds["bm25_negatives"] = needed / options.workers
            size += count * negatives.negatives_depth * _RANKED_PAGE_BYTES
        if "model_negatives" in options.chosen_stages:
            pairs = rows["texts searched by"] * negatives.negatives_depth
            rate = _pairs_per_second(texts, negatives, options.device)
            seconds["model_negatives"] = pairs / rate / options.workers
            size += pairs * _RANKED_PAGE_BYTES
        if "dense_negatives" in options.chosen_stages:
            count, _ = _searches(directory, built, sample.fraction, options.tasks)
            rows["texts searched by"] = count
            encoded = count + rows["documents"]
            seconds["dense_negatives"] = encoded / _vectors_per_second(texts, negatives, options)
            size += count * negatives.negatives_depth * _RANKED_PAGE_BYTES
        return Estimate(sample.fraction, rows, seconds, round(size))


def _searches(
    directory: Path, built: SampleBuild, fraction: float, tasks: Sequence[str]
) -> tuple[int, float]:
    """Estimate by how many texts BM25 searches for these tasks, and the seconds of one process."""
    from ..negatives.queries import needed_queries

    counts = {"pages": len(built.documents), "anchor_texts": built.rows.get("anchor_texts", 0)}
    if "sentence_anchors" in built.rows:
        targets = read_table(directory / "graph" / "sentence_anchors", ["targets"])
        counts["sentences"] = int((targets.column("targets").to_numpy() >= 2).sum())
    queries = {name: counts.get(name, 0) / fraction for name in needed_queries(tasks)}
    seconds = sum(_SECONDS_PER_QUERY[name] * count for name, count in queries.items())
    documents = len(built.documents) / fraction
    return round(sum(queries.values())), seconds * (documents / _MEASURED_DOCUMENTS) ** 0.6


def _texts(corpus: Path, documents: np.ndarray) -> list[str]:
    """The leads of the sample's documents, and its sentences with links."""
    pages = read_table(corpus / "pages", ["id", "lead"])
    is_document = np.isin(pages.column("id").to_numpy(), documents)
    sentences = read_table(corpus / "sentences", ["text"])
    leads = pages.filter(pa.array(is_document)).column("lead")
    return [*leads.to_pylist(), *sentences.column("text").to_pylist()]


def _texts_per_second(texts: list[str], weights: WeightOptions, device: str | None) -> float:
    """Weigh 64 texts, spread evenly over all, in one process and measure the time."""
    from ..weights.language_model import LanguageModelWeigher
    from ..weights.workers import load_weigher, one_thread

    step = max(1, len(texts) // _WEIGHED_TEXTS)
    chosen = texts[::step][:_WEIGHED_TEXTS]
    with one_thread():
        weigher = (
            load_weigher(weights, device)
            if weights.needs_model
            else LanguageModelWeigher(0, lambda words: np.zeros(len(words)))
        )
        weigher.weigh(chosen[:2])
        started = time.perf_counter()
        weigher.weigh(chosen)
        return len(chosen) / (time.perf_counter() - started)


def _pairs_per_second(texts: list[str], negatives: NegativeOptions, device: str | None) -> float:
    """Score 64 texts against each other in one process and measure the time."""
    from ..ranking.scorer import Scorer
    from ..weights.workers import one_thread

    step = max(1, len(texts) // _WEIGHED_TEXTS)
    chosen = texts[::step][:_WEIGHED_TEXTS]
    with one_thread():
        scorer = Scorer(negatives.negatives_model or "", device=device)
        scorer.score(chosen[:2], chosen[:2])
        started = time.perf_counter()
        scorer.score(chosen, chosen[::-1])
        return len(chosen) / (time.perf_counter() - started)


def _vectors_per_second(
    texts: list[str], negatives: NegativeOptions, options: BuildOptions
) -> float:
    """Encode 64 texts and measure the time; searching takes little beside it."""
    from ..ranking.dense.encoder import Encoder
    from ..ranking.windows import DocumentWindows

    step = max(1, len(texts) // _WEIGHED_TEXTS)
    chosen = texts[::step][:_WEIGHED_TEXTS]
    name = negatives.negatives_encoder or ""
    encoder = Encoder(name, DocumentWindows(), device=options.device)
    encoder.documents(chosen[:2])
    started = time.perf_counter()
    encoder.documents(chosen)
    return len(chosen) / (time.perf_counter() - started)


def report(expected: Estimate, output: Path) -> str:
    """Write an estimate as lines of at most 80 columns."""
    lines = [f"read {expected.fraction:.2%} of the sources; expected of the whole:"]
    for name, count in expected.rows.items():
        mark = "at least " if name in _AT_LEAST and expected.fraction < 1 else ""
        lines.append(f"  {name:<18} {mark:>9}{_rounded(count):>14,}")
    for name, seconds in expected.seconds.items():
        lines.append(f"  {name:<18} {_duration(seconds):>23}")
    free = shutil.disk_usage(next(p for p in (output, *output.absolute().parents) if p.exists()))
    lines.append(f"  {'disk':<18} {expected.size / 1e9:>20.2f} GB, free: {free.free / 1e9:.0f} GB")
    if expected.size > free.free:
        lines.append("  the disk is too small: name another --output-dir")
    return "\n".join(lines)


def _rounded(count: int) -> int:
    """Round to two digits: a sample is not more exact."""
    digits = max(0, len(str(count)) - 2)
    return round(count, -digits)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
