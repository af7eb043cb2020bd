"""A check of a task's data: what it measures, when that is too much, and what to do then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from ..tasks import TASKS
from .measurements import AuditedGroups, Measurement

__all__ = [
    "ACCURACY_THRESHOLDS",
    "BASELINE_THRESHOLDS",
    "NOTHING_TO_DO",
    "Check",
    "CheckResult",
    "Kind",
    "Level",
    "Thresholds",
]

NOTHING_TO_DO = "Nothing to do."
_TOO_FEW_GROUPS = (
    "Too few groups to tell it from chance: look at more with --table-groups, or build from more "
    "pages."
)
_TOO_EASY = (
    "The negatives are easy to tell from the positive: draw harder ones, with --negatives bm25."
)
_CHANCE = 0.5
_DIGITS = 4


class Kind(StrEnum):
    """What a check is: a rule that does not read, a baseline that reads a little, or a share."""

    RULE = "rule"
    BASELINE = "baseline"
    SHARE = "share"


class Level(StrEnum):
    """What the result of a check asks for: nothing, a look, or a change."""

    GREEN = "green"
    YELLOW = "yellow"
    RED = "red"

    @property
    def severity(self) -> int:
        """From 0 (green) to 2 (red)."""
        return list(Level).index(self)

    @property
    def sign(self) -> str:
        """A sign that differs from those of the other levels without its color."""
        return "✓▲✕"[self.severity]


class Thresholds(NamedTuple):
    """A share is green up to the first limit, yellow up to the second, and red above."""

    green: float
    yellow: float

    def level(self, share: float) -> Level:
        """The level of a share."""
        if share > self.yellow:
            return Level.RED
        return Level.YELLOW if share > self.green else Level.GREEN


ACCURACY_THRESHOLDS = Thresholds(0.60, 0.65)
"""How often a guess that does not read may be right; one half is chance."""
BASELINE_THRESHOLDS = Thresholds(0.90, 1.0)
"""How often a baseline may be right: above, the negatives are too easy."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check says about a task.

    Attributes:
        name: of the check, in `audit.json`.
        label: name of the check for people.
        measurement: what it measures.
        level: what that asks for.
        advice: one sentence on what to do.
        is_reversed: the opposite guess is right more often, and is judged instead.
        kind: whether the value is a share, or the accuracy of a rule or a baseline.
    """

    name: str
    label: str
    measurement: Measurement
    level: Level
    advice: str
    is_reversed: bool = False
    kind: Kind = Kind.RULE

    @property
    def value(self) -> float:
        """The measured share; of a reversed check the share of the opposite guess."""
        return 1 - self.measurement.value if self.is_reversed else self.measurement.value

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of the value, where that is an accuracy."""
        if self.measurement.interval is None:
            return None
        low, high = self.measurement.interval
        return (1 - high, 1 - low) if self.is_reversed else (low, high)

    @property
    def value_text(self) -> str:
        """The value as people read it."""
        text = f"{100 * self.value:.1f} %{' reversed' if self.is_reversed else ''}"
        others = self.measurement.negatives
        return text if others is None else f"+ {text}, − {100 * others:.1f} %"

    @property
    def interval_text(self) -> str:
        """The interval as people read it; empty where there is none."""
        return "–".join(f"{100 * end:.1f}" for end in self.interval or ())

    def as_json(self) -> dict[str, Any]:
        """Its entry in `audit.json`; value and interval are as measured, never reversed."""
        measured = self.measurement
        entry: dict[str, Any] = {
            "name": self.name,
            "kind": self.kind.value,
            "value": round(measured.value, _DIGITS),
        }
        if measured.negatives is not None:
            entry["value_of_negatives"] = round(measured.negatives, _DIGITS)
        if measured.interval is not None and measured.decided is not None:
            entry |= {
                "interval": [round(end, _DIGITS) for end in measured.interval],
                "reversed": self.is_reversed,
                "decided": round(measured.decided, _DIGITS),
                "pairs": measured.pairs,
                "groups": measured.groups,
            }
        return entry | {"level": self.level.value, "advice": self.advice}


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One thing that may be wrong with the data of a task.

    Attributes:
        label: its name for people.
        measure: measures it in the groups of a task; None where it does not apply to the task.
        limits: of the measured share.
        advice: one sentence on what to do where the level is not green.
        task_advice: other advice for a task, by the task's name.
        has_opposite: it guesses the positive, and a guess that is mostly wrong is judged by its
            opposite.
        reversed_advice: advice where the opposite is judged, if it is not the same.
        reversed_task_advice: the same for a task, by the task's name.
        by_design: why it says nothing against a task, by the task's name; it is green there. A
            task may say so itself, in its attribute ``by_design``.
        is_baseline: tells whether the check is a baseline for a task's groups, which is judged by
            `baseline_limits`, and only its opposite by the limits; without it, it is none.
        baseline_limits: of a baseline's accuracy.
    """

    label: str
    measure: Callable[[AuditedGroups], Measurement | None]
    limits: Thresholds
    advice: str
    task_advice: Mapping[str, str] = field(default_factory=dict)
    has_opposite: bool = False
    reversed_advice: str | None = None
    reversed_task_advice: Mapping[str, str] = field(default_factory=dict)
    by_design: Mapping[str, str] = field(default_factory=dict)
    is_baseline: Callable[[AuditedGroups], bool] = lambda groups: False
    baseline_limits: Thresholds = BASELINE_THRESHOLDS

    def run(self, name: str, groups: AuditedGroups) -> CheckResult | None:
        """Measure and judge a task; None where the check does not apply to it.

        Args:
            name: of the check.
            groups: those of the task.
        """
        measured = self.measure(groups)
        if measured is None:
            return None
        is_reversed = self.has_opposite and measured.value < _CHANCE
        kind = Kind.SHARE if measured.interval is None else Kind.RULE
        if kind is Kind.RULE and self.is_baseline(groups):
            kind = Kind.BASELINE
        design = self.by_design.get(groups.task) or _own_design(groups.task, name)
        if design:
            return CheckResult(name, self.label, measured, Level.GREEN, design, is_reversed, kind)
        level, advice = self._judge(groups.task, measured, kind, is_reversed)
        return CheckResult(name, self.label, measured, level, advice, is_reversed, kind)

    def _judge(
        self, task: str, measured: Measurement, kind: Kind, is_reversed: bool
    ) -> tuple[Level, str]:
        judged = measured.value if measured.judged is None else measured.judged
        if kind is Kind.BASELINE and not is_reversed:
            level = self.baseline_limits.level(judged)
            return level, NOTHING_TO_DO if level is Level.GREEN else _TOO_EASY
        level = self.limits.level(1 - judged if is_reversed else judged)
        if level is Level.GREEN:
            return level, NOTHING_TO_DO
        if measured.interval is not None:
            low, high = measured.interval
            if low <= _CHANCE <= high:
                return Level.YELLOW, _TOO_FEW_GROUPS
        return level, self._advise(task, is_reversed)

    def _advise(self, task: str, is_reversed: bool) -> str:
        advice = self.task_advice.get(task, self.advice)
        if is_reversed:
            return self.reversed_task_advice.get(task) or self.reversed_advice or advice
        return advice


def _own_design(task: str, check: str) -> str | None:
    """Return what a task says of a check that is no fault of it."""
    declared = getattr(TASKS[task], "by_design", {}) if task in TASKS else {}
    return declared.get(check)
