"""`harp build --dry-run`: what a build will give, need and take, told by a sample."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..errors import HarpError
from ..files.temporary import temporary_folder
from ..graph.functional import FUNCTIONAL_ANCHORS
from ..storage import read_table, table_bytes
from ..tasks.registry import HARP_TASKS

if TYPE_CHECKING:
    from ..corpus.options import CorpusOptions
    from ..graph import GraphOptions
    from ..weights.options import WeightOptions
    from .build import BuildOptions

_WEIGHED_TEXTS = 64
_AT_LEAST = ("qdm", "ltm", "wlp")
# Measured on builds (benchmarks/RESULTS.md): relational work, and tables whose size hardly varies.
_SECONDS_PER_LINK = 6e-6
_BYTES = {"anchor": 50, "example": 14, "word weight": 4, "mapped row": 100}


@dataclass(frozen=True)
class Estimate:
    """What to expect of a build.

    Attributes:
        fraction: the part of the sources that was read.
        rows: of pages, links and so on, and examples of each task.
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
    for more text makes more anchor texts ambiguous; so are those of tasks outside of HARP that read
    links, for which only links inside the sample count. Filters of titles as anchors and of
    near-duplicate leads are not regarded.

    Raises:
        HarpError: a source or model is missing or damaged, the sample has no page, or nothing
            comes out.
    """
    from ..corpus.sample import sample_corpus
    from .build import check

    check(sources, options, weights)
    if options.sample_pages < 1:
        raise HarpError(f"--sample-pages {options.sample_pages}: give 1 or more")
    with temporary_folder("harp-dry-run-") as directory:
        sample = sample_corpus(sources, directory, corpus, options.sample_pages)
        counted = _Counted(directory / "corpus", sample.fraction, graph)
        rows = {name: round(count) for name, count in counted.rows.items()}
        left_out = set(HARP_TASKS) - set(options.tasks)
        rows = {name: count for name, count in rows.items() if name not in left_out}
        others = [task for task in options.tasks if task not in HARP_TASKS]
        rows |= _in_sample(directory, others, graph, sample.fraction)
        tables = [
            directory / "corpus" / name for name in ("pages", "sentences", "links", "sections")
        ]
        written = sum(table_bytes(table) for table in tables) / sample.fraction
        seconds = {
            "corpus": sample.seconds / sample.fraction / options.workers,
            "graph, examples": rows["links"] * _SECONDS_PER_LINK,
        }
        if "weights" in options.chosen_stages:
            rate = _texts_per_second(counted.texts, weights, options.device)
            texts = rows["linked sentences"] + rows["documents"]
            seconds["weights"] = texts / rate / options.workers
        return Estimate(sample.fraction, rows, seconds, round(written + counted.more_bytes))


def _in_sample(
    directory: Path, tasks: list[str], graph: GraphOptions, fraction: float
) -> dict[str, int]:
    """Examples of tasks that the sample gives by itself, scaled up."""
    from ..graph import build_graph
    from ..tasks.build import build_examples

    if not tasks:
        return {}
    try:
        build_graph(directory, graph)
        found = build_examples(directory, tasks)["rows"]
    except HarpError:  # no link or no example in the sample
        found = {}
    return {task: round(found.get(task, 0) / fraction) for task in tasks}


class _Counted:
    """What a sample's tables say about the whole."""

    def __init__(self, corpus: Path, fraction: float, graph: GraphOptions) -> None:
        columns = ["id", "key", "lead", "words", "kind", "lead_words"]
        pages = read_table(corpus / "pages", columns).to_pylist()
        page_count = len(pages)
        links = read_table(corpus / "links", ["sentence", "normalised", "target", "region"])
        sentences = read_table(corpus / "sentences").to_pylist()
        redirects = read_table(corpus / "redirects").to_pylist()
        moved = {row["source"]: row["target"] for row in redirects}
        choices = {"disambiguation": graph.disambiguation_pages, "list": graph.list_pages}
        pages = [
            row
            for row in pages
            if (row["words"] is None or row["words"] >= graph.min_words)
            and choices.get(row["kind"]) != "drop"
        ]
        documents = {
            row["key"]: row["lead"]
            for row in pages
            if row["lead"] and row["lead_words"] >= graph.min_lead_words
        }
        keys = {row["id"]: row["key"] for row in pages}
        functional = FUNCTIONAL_ANCHORS if graph.functional_anchors == "drop" else ()
        origins = {row["id"]: keys.get(row["page"]) for row in sentences}
        targets: dict[int, set[str]] = {}
        anchors: dict[str, Counter[str]] = {}
        total = inside = 0
        for link in links.to_pylist():
            origin = origins[link["sentence"]]
            target = moved.get(link["target"], link["target"])
            if link["normalised"] in functional:
                continue
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
            "pages": page_count,
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
    from ..weights.language_model import LanguageModelWeigher
    from ..weights.workers import load_weigher, one_thread

    step = max(1, len(texts) // _WEIGHED_TEXTS)
    some = texts[::step][:_WEIGHED_TEXTS]
    with one_thread():
        weigher = (
            load_weigher(weights, device)
            if weights.needs_model
            else LanguageModelWeigher(0, lambda words: np.zeros(len(words)))
        )
        weigher.weigh(some[:2])
        started = time.perf_counter()
        weigher.weigh(some)
        return len(some) / (time.perf_counter() - started)


def report(found: Estimate, output: Path) -> str:
    """The estimate as lines of at most 80 columns."""
    lines = [f"read {found.fraction:.2%} of the sources; expected of the whole:"]
    for name, count in found.rows.items():
        mark = "at least " if name in _AT_LEAST and found.fraction < 1 else ""
        lines.append(f"  {name:<18} {mark:>9}{_rounded(count):>14,}")
    for name, seconds in found.seconds.items():
        lines.append(f"  {name:<18} {_duration(seconds):>23}")
    free = shutil.disk_usage(next(p for p in (output, *output.absolute().parents) if p.exists()))
    lines.append(f"  {'disk':<18} {found.size / 1e9:>20.2f} GB, free: {free.free / 1e9:.0f} GB")
    if found.size > free.free:
        lines.append("  the disk is too small: name another --output-dir")
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
