"""`harp inspect`: what a build holds, in numbers and in samples."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from ..build import STAGES
from ..errors import HarpError
from ..models import load_tokenizer
from ..storage import read_manifest
from ..storage.stage import write_text
from ..tasks import DrawOptions, PairGroup
from ..weights.options import WeightOptions
from .options import InspectOptions
from .samples import Sample, make_sample
from .table import (
    PAPER_NOTE,
    TOKENS_NOTE,
    TaskRow,
    TokenCounter,
    format_table,
    most_frequent,
)
from .tracing import TracedData

_WIDTH = 80


@dataclass(frozen=True)
class InspectionReport:
    """What was found in a build.

    Attributes:
        rows: a row per task.
        counts: numbers of pages, links and so on, by name.
        drops: per stage, reasons with their numbers, the most frequent first; ``drawing`` are
            examples that gave no pair.
        samples: sample groups of each task.
        draw: how they were drawn.
        options: what was asked for.
        model: whose wordpieces are counted.
        manifests: of each stage.
        path: the HTML page.
    """

    rows: list[TaskRow]
    counts: dict[str, int]
    drops: dict[str, list[tuple[str, int]]]
    samples: dict[str, list[Sample]]
    draw: DrawOptions
    options: InspectOptions
    model: str
    manifests: dict[str, dict[str, Any]]
    path: Path

    @property
    def notes(self) -> tuple[str, ...]:
        """What must be known to read the table."""
        return TOKENS_NOTE.format(model=self.model), PAPER_NOTE

    def __str__(self) -> str:
        """The report as plain text, at most 80 columns wide."""
        counts = ", ".join(f"{count:,} {name}" for name, count in self.counts.items())
        dropped = ["Dropped:"] if any(self.drops.values()) else ["Nothing was dropped."]
        for stage, reasons in self.drops.items():
            dropped += [f"  {stage:<9}{reason:<57} {n:>11,}" for reason, n in reasons]
        return "\n".join(
            [
                _wrapped(counts),
                "",
                format_table(self.rows),
                "",
                *map(_wrapped, self.notes),
                "",
                *dropped,
                "",
                f"Sample pairs: {self.path}",
            ]
        )


def inspect(
    directory: str | Path, options: InspectOptions | None = None, draw: DrawOptions | None = None
) -> InspectionReport:
    """Count the pairs of a finished build, and write a page that shows some of each task.

    The groups are those that training draws in its first epoch with the same seed and options. The
    same build, options and seed give the same bytes.

    Args:
        directory: a folder written by ``harp build``.
        options: what to draw and where to write.
        draw: how pairs are drawn.

    Raises:
        HarpError: the build is unfinished, or the model for counting tokens is missing.
    """
    from .page import render

    directory, options, draw = Path(directory), options or InspectOptions(), draw or DrawOptions()
    manifests = {stage: read_manifest(directory / stage) for stage in STAGES}
    model = options.model or manifests["weights"]["options"].get("model", WeightOptions.model)
    weighting = manifests["weights"]["options"].get("weighting", WeightOptions.weighting)
    counter = TokenCounter(load_tokenizer(model))
    inspector = _Inspector(directory, options, draw, counter, weighting)
    examples = manifests["examples"]["rows"]
    tasks = manifests["examples"]["options"]["tasks"]
    rows = [inspector.row(task, examples.get(task, 0)) for task in tasks]
    drops = {stage: most_frequent(manifests[stage]["drops"]) for stage in STAGES}
    drops["drawing"] = most_frequent(inspector.drops)
    report = InspectionReport(
        rows=rows,
        counts=_counts(manifests),
        drops=drops,
        samples=inspector.samples,
        draw=draw,
        options=options,
        model=model,
        manifests=manifests,
        path=Path(options.output) if options.output else directory / "inspect.html",
    )
    try:
        report.path.parent.mkdir(parents=True, exist_ok=True)
        write_text(report.path, render(report))
    except OSError as error:
        raise HarpError(f"cannot write {report.path} ({error.strerror}): give --output") from error
    return report


class _Inspector:
    def __init__(
        self,
        directory: Path,
        options: InspectOptions,
        draw: DrawOptions,
        counter: TokenCounter,
        weighting: str,
    ) -> None:
        self.directory, self.options, self.draw = directory, options, draw
        self.counter, self.weighting = counter, weighting
        self.samples: dict[str, list[Sample]] = {}
        self.drops: dict[str, int] = {}

    def row(self, task: str, examples: int) -> TaskRow:
        self.samples[task] = []
        return self.counter.row(task, examples, self._groups(task, examples) if examples else ())

    def _groups(self, task: str, examples: int) -> Iterator[PairGroup]:
        """Draw groups; the first of them become samples."""
        data = TracedData(self.directory, {task: 1}, seed=self.options.seed, draw=self.draw)
        skipped: set[int] = set()
        wanted = min(max(self.options.table_groups, self.options.samples), examples)
        bar = tqdm(range(wanted), desc=task, unit="group", disable=self.options.quiet)
        for index in bar:
            drawn = data.drawn(index)
            if drawn is None:
                self.drops[f"{task}: no pair in 100 examples on end"] = 1
                break
            skipped.update(drawn.skipped)
            if index < self.options.samples:
                sample = make_sample(drawn, data.source, self.draw, self.weighting)
                self.samples[task].append(sample)
            yield drawn.group
        if skipped:
            self.drops[f"{task}: example that gives no pair (such as a tie)"] = len(skipped)


def _counts(manifests: dict[str, dict[str, Any]]) -> dict[str, int]:
    corpus, graph = manifests["corpus"]["rows"], manifests["graph"]["rows"]
    return {
        "pages": corpus["pages"],
        "redirects": corpus["redirects"],
        "sentences with links": corpus["sentences"],
        "links": corpus["links"],
        "links that resolve": graph["anchors"],
        "pages that may be a document": graph["documents"],
    }


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, _WIDTH))
