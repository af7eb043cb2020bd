"""`harp inspect`: what a build holds, in numbers and in samples."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from ..errors import HarpError
from ..files.writing import write_text
from ..models.loading import load_tokenizer
from ..storage import read_manifest
from ..tasks import DrawOptions, PairGroup
from ..tasks.registry import needed_stages
from ..weights.options import WeightOptions
from .audit import TaskAudit, as_json, audit, audit_path
from .observations import Observation, observe
from .options import InspectOptions
from .ours import AUDIT_MARK, PAGE_MARK, refuse_others
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
        audits: of each task that gives a group.
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
    audits: list[TaskAudit]
    draw: DrawOptions
    options: InspectOptions
    model: str
    manifests: dict[str, dict[str, Any]]
    path: Path

    @property
    def notes(self) -> tuple[str, ...]:
        """What must be known to read the table."""
        return TOKENS_NOTE.format(model=self.model), PAPER_NOTE

    @property
    def audit_path(self) -> Path:
        """The audit as JSON."""
        return audit_path(self.path)

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
                *self._audit_lines(),
                *dropped,
                "",
                f"Sample pairs: {self.path}",
            ]
        )

    def _audit_lines(self) -> Iterator[str]:
        """The worst rule of each task, and whatever is not green."""
        if not self.audits:
            return
        yield _wrapped(
            "Can the pairs be told apart without reading? The rule that is right most often, "
            f"and all that is yellow or red (what to do: {self.audit_path.name} and the page):"
        )
        for each in self.audits:
            for number, finding in enumerate(each.notable):
                task = each.task[:7] if number == 0 else ""
                light = finding.light.value.upper().replace("GREEN", "green")
                interval = f" ({finding.interval_text})" if finding.interval_text else ""
                yield f"  {task:<8}{light:<7}{finding.label[:31]:<32}{finding.text}{interval}"
        yield ""


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
        HarpError: the build is unfinished, the model for counting tokens is missing, or the page
            would replace a file that is not ours.
    """
    from .page import render

    directory, options, draw = Path(directory), options or InspectOptions(), draw or DrawOptions()
    path = Path(options.output) if options.output else directory / "inspect.html"
    refuse_others(path, PAGE_MARK)
    refuse_others(audit_path(path), AUDIT_MARK)
    tasks = read_manifest(directory / "examples")["options"]["tasks"]
    manifests = {stage: read_manifest(directory / stage) for stage in needed_stages(tasks)}
    weighed = manifests["weights"]["options"] if "weights" in manifests else {}
    model = options.model or weighed.get("model", WeightOptions.model)
    weighting = weighed.get("weighting", WeightOptions.weighting)
    counter = TokenCounter(load_tokenizer(model))
    inspector = _Inspector(directory, options, draw, counter, weighting)
    examples = manifests["examples"]["rows"]
    rows = [inspector.row(task, examples.get(task, 0)) for task in tasks]
    drops = {stage: most_frequent(manifests[stage]["drops"]) for stage in manifests}
    drops["drawing"] = most_frequent(inspector.drops)
    report = InspectionReport(
        rows=rows,
        counts=_counts(manifests),
        drops=drops,
        samples=inspector.samples,
        audits=inspector.audits,
        draw=draw,
        options=options,
        model=model,
        manifests=manifests,
        path=path,
    )
    try:
        report.path.parent.mkdir(parents=True, exist_ok=True)
        write_text(report.audit_path, as_json(report.audits, manifests, draw, options.seed))
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
        self.audits: list[TaskAudit] = []
        self.drops: dict[str, int] = {}

    def row(self, task: str, examples: int) -> TaskRow:
        self.samples[task] = []
        return self.counter.row(task, examples, self._groups(task) if examples else ())

    def _groups(self, task: str) -> Iterator[PairGroup]:
        """Draw groups; the first of them become samples, all are audited."""
        data = TracedData(self.directory, {task: 1}, seed=self.options.seed, draw=self.draw)
        observations: list[Observation] = []
        skipped: set[int] = set()
        wanted = min(max(self.options.table_groups, self.options.samples), data.groups[task])
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
            observations.append(observe(drawn, data.source, self.draw))
            yield drawn.group
        if skipped:
            self.drops[f"{task}: example that gives no pair (such as a tie)"] = len(skipped)
        documents, seed = len(data.source.documents), self.options.seed
        if found := audit(task, observations, documents=documents, seed=seed):
            self.audits.append(found)


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
