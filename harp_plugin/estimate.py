"""`harp build --dry-run`: what a build will give, need and take, told by a sample."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .storage import read_table, table_bytes

if TYPE_CHECKING:
    from .build import BuildOptions
    from .corpus.options import CorpusOptions
    from .graph import GraphOptions
    from .weights.options import WeightOptions

_WEIGHED_TEXTS = 64
# Measured on builds (benchmarks/RESULTS.md): relational work, and tables whose size hardly varies.
_SECONDS_PER_LINK = 6e-6
_BYTES = {"anchor": 50, "example": 14, "word weight": 4, "mapped row": 100}


@dataclass(frozen=True)
class Estimate:
    """What to expect of a build.

    Attributes:
        fraction: the part of the sources that was read.
        rows: of pages, links and so on, and examples of each HARP task.
        seconds: of each stage.
        size: bytes of the finished build.
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
) -> Estimate:
    """Build the corpus tables of a sample in a temporary folder and extrapolate.

    The pages at the beginning of a dump are older, longer and better linked than the rest, so
    that numbers are rather too high. Of targets that lie outside of the sample, a link is taken
    to resolve as often as the sample's links into the sample say. QDM's number is a lower bound,
    for more text makes more anchor texts ambiguous.

    Raises:
        HarpError: a source or model is missing or damaged, or nothing comes out.
    """
    from .build import check
    from .corpus.sample import sample_corpus

    check(sources, options, weights)
    with tempfile.TemporaryDirectory(prefix="harp-dry-run-") as folder:
        directory = Path(folder)
        sample = sample_corpus(sources, directory, corpus, options.sample_pages)
        counted = _Counted(directory / "corpus", sample.fraction, graph.min_words)
        rows = {name: round(count) for name, count in counted.rows.items()}
        rate = _texts_per_second(counted.texts, weights, options.device)
        tables = [directory / "corpus" / name for name in ("pages", "sentences", "links")]
        written = sum(table_bytes(table) for table in tables) / sample.fraction
        seconds = {
            "corpus": sample.seconds / sample.fraction / options.workers,
            "graph, examples": rows["links"] * _SECONDS_PER_LINK,
            "weights": (rows["linked sentences"] + rows["documents"]) / rate / options.workers,
        }
        return Estimate(sample.fraction, rows, seconds, round(written + counted.more_bytes))


class _Counted:
    """What a sample's tables say about the whole."""

    def __init__(self, corpus: Path, fraction: float, min_words: int) -> None:
        pages = read_table(corpus / "pages", ["id", "key", "lead", "words"]).to_pylist()
        links = read_table(corpus / "links", ["sentence", "normalised", "target", "region"])
        sentences = read_table(corpus / "sentences").to_pylist()
        redirects = read_table(corpus / "redirects").to_pylist()
        moved = {row["source"]: row["target"] for row in redirects}
        long_enough = {
            row["id"] for row in pages if row["words"] is None or row["words"] >= min_words
        }
        documents = {row["key"]: row["lead"] for row in pages if row["id"] in long_enough}
        documents = {key: lead for key, lead in documents.items() if lead}
        keys = {row["id"]: row["key"] for row in pages if row["id"] in long_enough}
        origins = {row["id"]: keys.get(row["page"]) for row in sentences}
        targets: dict[int, set[str]] = {}
        anchors: dict[str, Counter[str]] = {}
        total = inside = 0
        for link in links.to_pylist():
            origin = origins[link["sentence"]]
            target = moved.get(link["target"], link["target"])
            if link["region"] is None and origin not in (None, target):
                total += 1
                inside += target in documents
                targets.setdefault(link["sentence"], set()).add(target)
                anchors.setdefault(link["normalised"], Counter())[target] += 1
        share = min(1.0, inside / fraction / total) if total else 0.0
        ambiguous = sum(found.total() for found in anchors.values() if len(found) > 1)
        sizes = Counter(map(len, targets.values()))
        several = sum(count * _at_least_two(size, share) for size, count in sizes.items())
        linked = sum(count * (1 - (1 - share) ** size) for size, count in sizes.items())
        counts = {
            "pages": len(pages),
            "redirects": len(redirects),
            "documents": len(documents),
            "links": links.num_rows,
            "linked sentences": linked,
            "rqp": total * share,
            "qdm": ambiguous * share * share,
            "rdp": several,
            "acm": several,
        }
        self.rows: dict[str, float] = {name: n / fraction for name, n in counts.items()}
        self.texts = [*documents.values(), *(row["text"] for row in sentences)]
        words = sum(len(text.split()) for text in self.texts) / max(1, len(self.texts))
        texts = self.rows["documents"] + self.rows["linked sentences"]
        characters = sum(map(len, self.texts)) / fraction
        self.more_bytes = (
            self.rows["rqp"] * (_BYTES["anchor"] + 2 * _BYTES["mapped row"])
            + sum(self.rows[task] for task in ("rqp", "qdm", "rdp", "acm")) * _BYTES["example"]
            + (texts + self.rows["rqp"]) * words * 2 * _BYTES["word weight"]
            + characters
        )


def _at_least_two(size: int, share: float) -> float:
    none = (1 - share) ** size
    return 1 - none - size * share * (1 - share) ** (size - 1)


def _texts_per_second(texts: list[str], weights: WeightOptions, device: str | None) -> float:
    from .weights.build import load_weigher, one_thread
    from .weights.language_model import LanguageModel

    step = max(1, len(texts) // _WEIGHED_TEXTS)
    some = texts[::step][:_WEIGHED_TEXTS]
    with one_thread():
        weigher = (
            load_weigher(weights, device)
            if weights.needs_model
            else LanguageModel(0, lambda words: np.zeros(len(words)))
        )
        weigher.weigh(some[:2])
        started = time.perf_counter()
        weigher.weigh(some)
        return len(some) / (time.perf_counter() - started)


def report(found: Estimate, output: Path) -> str:
    """The estimate as lines of at most 80 columns."""
    lines = [f"read {found.fraction:.2%} of the sources; expected of the whole:"]
    for name, count in found.rows.items():
        mark = "at least " if name == "qdm" and found.fraction < 1 else ""
        lines.append(f"  {name:<18} {mark:>9}{_rounded(count):>14,}")
    for name, seconds in found.seconds.items():
        lines.append(f"  {name:<18} {_duration(seconds):>23}")
    free = shutil.disk_usage(next(p for p in (output, *output.absolute().parents) if p.exists()))
    lines.append(f"  {'disk':<18} {found.size / 1e9:>20.2f} GB, free: {free.free / 1e9:.0f} GB")
    if found.size > free.free:
        lines.append("  the disk is too small: name another --output")
    return "\n".join(lines)


def _rounded(count: int) -> int:
    """To two digits: a sample tells no more."""
    digits = max(0, len(str(count)) - 2)
    return round(count, -digits)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
