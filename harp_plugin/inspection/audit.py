"""The audit: can a task's pairs be told apart without reading, and what is wrong with its data?"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..tasks import DrawOptions
from .check import BASELINE_THRESHOLDS, CheckResult, Kind, Level
from .checks import CHECKS
from .generator import GENERATOR
from .histograms import Histogram, histograms
from .measurements import AuditedGroups

__all__ = ["TaskAudit", "audit", "audit_json", "audit_path"]


@dataclass(frozen=True, slots=True)
class TaskAudit:
    """What the checks say about the groups of one task.

    Attributes:
        task: its name.
        groups: number of groups that were audited.
        results: of the checks that apply to the task, in their order.
        histograms: of lengths and ranks.
    """

    task: str
    groups: int
    results: tuple[CheckResult, ...]
    histograms: tuple[Histogram, ...]

    @property
    def worst(self) -> CheckResult:
        """The result that the task's level comes from.

        Of several with that level it is the rule of the highest accuracy, else the first share,
        else a baseline.
        """
        return max(
            self.results,
            key=lambda each: (
                each.level.severity,
                each.kind is not Kind.BASELINE,
                each.interval is not None,
                each.value if each.interval is not None else 0.0,
            ),
        )

    @property
    def level(self) -> Level:
        """The worst level of all results."""
        return self.worst.level

    @property
    def notable(self) -> tuple[CheckResult, ...]:
        """The worst result, then all others that are not green: red before yellow."""
        others = [
            each
            for each in self.results
            if each is not self.worst and each.level is not Level.GREEN
        ]
        return self.worst, *sorted(others, key=lambda each: -each.level.severity)

    @property
    def best_baseline(self) -> CheckResult | None:
        """The green baseline of the highest accuracy."""
        baselines = [
            each
            for each in self.results
            if each.kind is Kind.BASELINE and each.level is Level.GREEN
        ]
        return max(baselines, key=lambda each: each.value, default=None)

    def as_json(self) -> dict[str, Any]:
        """Its entry in `audit.json`."""
        return {
            "groups": self.groups,
            "level": self.level.value,
            "worst": self.worst.name,
            "checks": [each.as_json() for each in self.results],
            "histograms": [each.as_json() for each in self.histograms],
        }


def audit(groups: AuditedGroups) -> TaskAudit | None:
    """Run all checks on groups of a task; None where there is no group."""
    if not groups.observations:
        return None
    results = [check.run(name, groups) for name, check in CHECKS.items()]
    return TaskAudit(
        groups.task,
        len(groups.observations),
        tuple(result for result in results if result is not None),
        tuple(histograms(groups.observations)),
    )


def audit_path(page: Path) -> Path:
    """Where the audit of a page goes: ``audit.json`` beside ``inspect.html``."""
    if page.stem == "inspect":
        return page.with_name("audit.json")
    return page.with_name(f"{page.stem}-audit.json")


def audit_json(
    audits: list[TaskAudit],
    manifests: dict[str, dict[str, Any]],
    draw: DrawOptions,
    seed: int,
    model: str,
    not_run: str,
) -> str:
    """Write the text of `audit.json`: what was checked, the limits, and each task's results."""
    content = {
        "generator": GENERATOR,
        "build": {stage: manifest["content"] for stage, manifest in manifests.items()},
        "seed": seed,
        "draw": asdict(draw),
        "model": None if not_run else model,
        "model_checks_not_run": not_run or None,
        "limits": {name: check.limits._asdict() for name, check in CHECKS.items()},
        "limits_of_baselines": BASELINE_THRESHOLDS._asdict(),
        "tasks": {each.task: each.as_json() for each in audits},
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
