"""The report of `harp inspect`: its text in the terminal, and one HTML page."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup, escape

from ..html_page import render_page
from ..tasks import PRESETS, TASKS, DrawOptions
from .audit import GENERATOR, TaskAudit, audit_path
from .checks import CHECKS, GREEN_UP_TO, TOO_EASY, YELLOW_UP_TO
from .samples import Sample
from .shading import LEVELS

__all__ = ["PAPER", "InspectionReport", "TaskRow"]

PAPER = {
    "rqp": ("17.71M", 2.64, 90.48),
    "qdm": ("1.35M", 2.80, 81.17),
    "rdp": ("6.49M", 34.90, 85.86),
    "acm": ("12.64M", 4.55, 73.64),
}
"""Rows of Table 1 of the HARP paper: pairs as printed, mean tokens of queries and documents."""
_TOKENS_NOTE = "Tokens are wordpieces of {}, without special tokens, nothing cut."
_PAPER_NOTE = (
    "The paper's query lengths fit none of the three readings exactly: one anchor and "
    "Poisson words make 4.16 words on average, the paper prints 2.64 and 2.80."
)
_NOT_RUN = "The checks that need an encoder were not run:"
_WIDTH = 80
_COLUMNS = "{:<10}{:>12}{:>8}{:>9}{:>8}{:>10}{:>8}{:>10}"
_HEAD = (
    ("", "", "pairs", "query", "tokens", "document", "tokens", "pairs"),
    ("task", "examples", "drawn", "here", "paper", "here", "paper", "in paper"),
)
_FLAG = re.compile(r"--[a-z-]+")


class TaskRow(NamedTuple):
    """One task of a build.

    Attributes:
        task: its name.
        examples: number of its examples in the build.
        pairs: number of pairs that were drawn for the means; each member of a group is one.
        query: mean tokens of their queries, None where nothing was drawn.
        document: mean tokens of their documents, None where nothing was drawn.
    """

    task: str
    examples: int
    pairs: int
    query: float | None
    document: float | None

    @property
    def cells(self) -> tuple[str, ...]:
        """The row as people read it, next to the paper's."""
        pairs, *paper = PAPER.get(self.task, ("–", None, None))
        means = (self.query, paper[0], self.document, paper[1])
        shown = ("–" if mean is None else f"{mean:.2f}" for mean in means)
        return self.task, f"{self.examples:,}", f"{self.pairs:,}", *shown, pairs


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
        draw: how the groups were drawn.
        seed: of the draws.
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
    draw: DrawOptions
    seed: int
    model: str
    manifests: dict[str, dict[str, Any]]
    path: Path

    @property
    def notes(self) -> list[str]:
        """What a reader must know to understand the counts and the audit."""
        notes = [_TOKENS_NOTE.format(self.model)]
        notes += [_PAPER_NOTE] * any(row.task in PAPER for row in self.rows)
        return notes + [f"{_NOT_RUN} {self.not_run}"] * bool(self.not_run)

    @property
    def audit_path(self) -> Path:
        """Where `audit.json` is."""
        return audit_path(self.path)

    def json(self) -> str:
        """Write the text of `audit.json`: what was checked, and each task's results."""
        content = {
            "generator": GENERATOR,
            "build": {stage: each["content"] for stage, each in self.manifests.items()},
            "seed": self.seed,
            "draw": asdict(self.draw),
            "model": None if self.not_run else self.model,
            "model_checks_not_run": self.not_run or None,
            "tasks": {each.task: each.as_json() for each in self.audits},
        }
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"

    def __str__(self) -> str:
        """The report as plain text, at most 80 columns wide."""
        return "\n".join(
            [
                _wrapped(", ".join(f"{count:,} {name}" for name, count in self.counts.items())),
                "",
                *(_COLUMNS.format(*line).rstrip() for line in _HEAD),
                *(_COLUMNS.format(row.task[:10], *row.cells[1:]) for row in self.rows),
                "",
                *map(_wrapped, self.notes),
                "",
                *self._audit_lines(),
                *self._dropped_lines(),
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
            best = each.best_baseline
            for number, result in enumerate([*each.notable, *filter(None, [best])]):
                task = "" if number else each.task[:7]
                level = result.level.name if result.level else "green"
                level = "reads" if number == len(each.notable) else level
                value = f"{result.value_text} ({result.interval_text})"
                yield f"  {task:<8}{level:<7}{result.label[:31]:<32}{value}"
        yield ""

    def _dropped_lines(self) -> Iterator[str]:
        yield "Dropped:" if any(self.drops.values()) else "Nothing was dropped."
        width = max(map(len, self.drops), default=0) + 1
        for stage, reasons in self.drops.items():
            for reason, number in reasons:
                yield f"  {stage:<{width}}{reason:<{66 - width}} {number:>11,}"

    def html(self) -> str:
        """Write the page: it escapes every text of the corpus, and may load nothing."""
        default = PRESETS["default"]
        return render_page(
            __package__,
            {"flags": _flags, "percent": "{:.0%}".format},
            report=self,
            generator=GENERATOR,
            sources=[name.partition(":")[2] for name in self.manifests["corpus"]["inputs"]],
            weight_levels=range(1, LEVELS + 1),
            limits=(GREEN_UP_TO, YELLOW_UP_TO, TOO_EASY),
            results={each.task: {r.name: r for r in each.results} for each in self.audits},
            labels={name: check.label for name, check in CHECKS.items()},
            teaches={row.task: _first_paragraph(TASKS[row.task]) for row in self.rows},
            drawing=[
                (name, value, name in default and value != default[name])
                for name, value in asdict(self.draw).items()
            ],
        )


def _first_paragraph(task: type) -> str:
    return " ".join((task.__doc__ or "").split("\n\n")[0].split())


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, _WIDTH))


def _flags(text: str) -> Markup:
    """Mark the command-line options in a sentence as code."""
    return Markup(_FLAG.sub(lambda flag: f"<code>{flag[0]}</code>", str(escape(text))))
