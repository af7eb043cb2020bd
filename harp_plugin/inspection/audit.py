"""The audit: can a task's pairs be told apart without reading?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._version import __version__
from .checks import CHECKS, CheckResult, Level
from .groups import AuditedGroups

__all__ = ["GENERATOR", "TaskAudit", "audit", "audit_path"]

GENERATOR = f"harp_plugin {__version__}"
"""What the page and `audit.json` name as the program that wrote them."""


@dataclass(frozen=True, slots=True)
class TaskAudit:
    """What the checks say about the groups of one task.

    Attributes:
        task: its name.
        groups: number of groups that were audited.
        results: of the checks that apply to the task, in their order.
    """

    task: str
    groups: int
    results: tuple[CheckResult, ...]

    @property
    def worst(self) -> CheckResult:
        """The result that gives the task its level.

        Of several with that level it is the rule of the highest accuracy, else a baseline.
        """
        return max(
            self.results,
            key=lambda each: (each.level, not each.is_baseline, each.measurement.value),
        )

    @property
    def notable(self) -> tuple[CheckResult, ...]:
        """The worst result, then all others that are not green: red before yellow."""
        others = [e for e in self.results if e is not self.worst and e.level]
        return self.worst, *sorted(others, key=lambda each: -each.level)

    @property
    def best_baseline(self) -> CheckResult | None:
        """The green baseline of the highest accuracy."""
        baselines = [e for e in self.results if e.is_baseline and e.level is Level.GREEN]
        return max(baselines, key=lambda each: each.measurement.value, default=None)

    def as_json(self) -> dict[str, Any]:
        """Its entry in `audit.json`."""
        return {
            "groups": self.groups,
            "level": self.worst.level.name.lower(),
            "worst": self.worst.name,
            "checks": [each.as_json() for each in self.results],
        }


def audit(groups: AuditedGroups) -> TaskAudit | None:
    """Run all checks on groups of a task; None where none of them applies."""
    results = [check.run(name, groups) for name, check in CHECKS.items()]
    applying = tuple(result for result in results if result is not None)
    return TaskAudit(groups.task, len(groups.observations), applying) if applying else None


def audit_path(page: Path) -> Path:
    """Return where the audit of a page goes: ``audit.json`` next to ``inspect.html``."""
    name = "audit.json" if page.stem == "inspect" else f"{page.stem}-audit.json"
    return page.with_name(name)
