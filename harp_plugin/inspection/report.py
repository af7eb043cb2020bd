"""The report of `harp inspect`, and its text in the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..tasks import DrawOptions
from .audit import TaskAudit, audit_path
from .check import CheckResult, Level
from .options import InspectOptions
from .query_likeness import LikenessSamples
from .samples import Sample
from .table import PAPER_NOTE, TOKENS_NOTE, TaskRow, format_table

__all__ = ["NOT_RUN", "InspectionReport"]

NOT_RUN = "The checks that need an encoder were not run:"

_WIDTH = 80
_TEXTS_SHOWN = 5


@dataclass(frozen=True)
class InspectionReport:
    """What `harp inspect` says about a build.

    Attributes:
        rows: one for each task.
        counts: numbers of pages, links and so on, by name.
        drops: for each stage, the reasons of its drops with their numbers, the most frequent
            first; ``drawing`` counts the examples that gave no pair.
        samples: sample groups of each task.
        audits: one for each task that gives a group.
        not_run: why the checks that need an encoder were not run; empty where they were.
        likeness: anchor texts by how much they look like queries; None where no classifier scored
            them.
        draw: how the groups were drawn.
        options: how many groups were drawn.
        model: the model whose wordpieces are counted, and whose encoder checks the pairs.
        manifests: those of the stages, by the stage's name.
        path: where the HTML page is.
    """

    rows: list[TaskRow]
    counts: dict[str, int]
    drops: dict[str, list[tuple[str, int]]]
    samples: dict[str, list[Sample]]
    audits: list[TaskAudit]
    not_run: str
    likeness: LikenessSamples | None
    draw: DrawOptions
    options: InspectOptions
    model: str
    manifests: dict[str, dict[str, Any]]
    path: Path

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know to understand the table."""
        has_paper = any(row.paper for row in self.rows)
        return (TOKENS_NOTE.format(model=self.model), *[PAPER_NOTE] * has_paper)

    @property
    def audit_path(self) -> Path:
        """Where `audit.json` is."""
        return audit_path(self.path)

    def __str__(self) -> str:
        """The report as plain text, at most 80 columns wide."""
        counts = ", ".join(f"{count:,} {name}" for name, count in self.counts.items())
        dropped = ["Dropped:"] if any(self.drops.values()) else ["Nothing was dropped."]
        width = max(map(len, self.drops), default=0) + 1
        for stage, reasons in self.drops.items():
            dropped += [
                f"  {stage:<{width}}{reason:<{66 - width}} {n:>11,}" for reason, n in reasons
            ]
        return "\n".join(
            [
                _wrapped(counts),
                "",
                format_table(self.rows),
                "",
                *map(_wrapped, self.notes),
                "",
                *self._audit_lines(),
                *self._likeness_lines(),
                *dropped,
                "",
                f"Sample pairs: {self.path}",
            ]
        )

    def _audit_lines(self) -> Iterator[str]:
        """The worst check of each task, all others that are not green, and the best baseline."""
        if not self.audits:
            return
        yield _wrapped(
            "Can the pairs be told apart without reading? The worst check of each task, all "
            "others that are yellow or red, and the best baseline, which reads a little (what to "
            f"do: {self.audit_path.name} and the page):"
        )
        for each in self.audits:
            for number, result in enumerate(each.notable):
                level = result.level if result.level is Level.GREEN else result.level.upper()
                yield _audit_line(each.task[:7] if number == 0 else "", level, result)
            if each.best_baseline is not None:
                yield _audit_line("", "reads", each.best_baseline)
        if self.not_run:
            yield _wrapped(f"{NOT_RUN} {self.not_run}")
        yield ""

    def _likeness_lines(self) -> Iterator[str]:
        """The anchor texts that look most and least like queries."""
        if self.likeness is None:
            return
        best, worst = (
            "; ".join(text for text, _ in texts[:_TEXTS_SHOWN])
            for texts in (self.likeness.best, self.likeness.worst[::-1])
        )
        yield _wrapped(f"Anchor texts that look most like queries: {best}")
        yield _wrapped(f"Anchor texts that look least like queries: {worst}")
        yield ""


def _audit_line(task: str, level: str, result: CheckResult) -> str:
    interval = f" ({result.interval_text})" if result.interval_text else ""
    return f"  {task:<8}{level:<7}{result.label[:31]:<32}{result.value_text}{interval}"


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, _WIDTH))
