"""The audit: can a task's pairs be told apart without reading, and what is wrong with its data?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..tasks import DrawOptions
from . import lights
from .advice import BY_DESIGN, NOTHING, TOO_FEW, advise
from .classifier import ask_bag_of_words
from .figures import figures
from .findings import Finding
from .histograms import Histogram, histograms
from .lights import Light
from .observations import Observation
from .ours import GENERATOR
from .rules import RULES, Outcome

_LEARNT = {
    "document_alone": ("document", "document alone"),
    "query_alone": ("query", "query alone"),
}


@dataclass(frozen=True, slots=True)
class TaskAudit:
    """What was found in one task's groups.

    Attributes:
        task: its name.
        groups: that were looked at.
        rules: how often rules that do not read are right; those that apply.
        figures: of the data; those that apply.
        histograms: of lengths and ranks.
    """

    task: str
    groups: int
    rules: tuple[Finding, ...]
    figures: tuple[Finding, ...]
    histograms: tuple[Histogram, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Rules and figures."""
        return (*self.rules, *self.figures)

    @property
    def light(self) -> Light:
        """The worst of all its lights."""
        return max((each.light for each in self.findings), key=lambda light: light.severity)

    @property
    def worst_rule(self) -> Finding | None:
        """The rule that is right most often, of those with the worst light."""
        return max(self.rules, key=lambda r: (r.light.severity, r.judged), default=None)

    @property
    def notable(self) -> tuple[Finding, ...]:
        """The worst rule, and all else that is not green; the worst first."""
        kept = [f for f in self.findings if f is self.worst_rule or f.light is not Light.GREEN]
        return tuple(sorted(kept, key=lambda f: (-f.light.severity, f is not self.worst_rule)))

    def as_json(self) -> dict[str, Any]:
        """Its entry in `audit.json`."""
        return {
            "groups": self.groups,
            "light": self.light.value,
            "rules": [each.as_json() for each in self.rules],
            "figures": [each.as_json() for each in self.figures],
            "histograms": [each.as_json() for each in self.histograms],
        }


def audit(
    task: str, observations: list[Observation], *, documents: int, seed: int
) -> TaskAudit | None:
    """Judge a task by some of its groups; None where there is none.

    Args:
        task: its name.
        observations: of its groups.
        documents: pages of the build that may be a document.
        seed: of the classifier's halves.
    """
    if not observations:
        return None
    return TaskAudit(
        task,
        len(observations),
        tuple(_rules(task, observations, seed)),
        tuple(_figures(task, observations, documents)),
        tuple(histograms(observations)),
    )


def _rules(task: str, observations: list[Observation], seed: int) -> Iterator[Finding]:
    for rule in RULES:
        if outcome := rule.ask(observations):
            yield _judge_rule(task, rule.name, rule.label, outcome)
    for name, (side, label) in _LEARNT.items():
        if outcome := ask_bag_of_words(observations, side, seed):
            yield _judge_rule(task, name, label, outcome)


def _judge_rule(task: str, name: str, label: str, outcome: Outcome) -> Finding:
    """A learnt rule is not reversed: below one half it has learnt nothing that holds."""
    share = outcome.accuracy
    is_reversed = share < 0.5 and name not in _LEARNT
    light = lights.RULE.light(1 - share if is_reversed else share)
    advice = advise(task, name, is_reversed=is_reversed)
    low, high = outcome.interval
    if (task, name) in BY_DESIGN:
        light, advice = Light.GREEN, BY_DESIGN[task, name]
    elif light is Light.GREEN:
        advice = NOTHING
    elif low <= 0.5 <= high:
        light, advice = Light.YELLOW, TOO_FEW
    return Finding(name, label, share, light, advice, outcome, is_reversed)


def _figures(task: str, observations: list[Observation], documents: int) -> Iterator[Finding]:
    for name, label, share, judged, negatives in figures(observations, documents):
        light = lights.FIGURES[name].light(judged)
        advice = NOTHING if light is Light.GREEN else advise(task, name)
        if (task, name) in BY_DESIGN:
            light, advice = Light.GREEN, BY_DESIGN[task, name]
        yield Finding(name, label, share, light, advice, negatives=negatives)


def audit_path(page: Path) -> Path:
    """Where the audit of a page goes: ``audit.json`` beside ``inspect.html``."""
    if page.stem == "inspect":
        return page.with_name("audit.json")
    return page.with_name(f"{page.stem}-audit.json")


def as_json(
    audits: list[TaskAudit], manifests: dict[str, dict[str, Any]], draw: DrawOptions, seed: int
) -> str:
    """The text of `audit.json`: what was judged, by which limits, and what was found."""
    limits = {"rules": lights.RULE._asdict()}
    limits |= {name: each._asdict() for name, each in lights.FIGURES.items()}
    content = {
        "generator": GENERATOR,
        "build": {stage: manifest["fingerprint"] for stage, manifest in manifests.items()},
        "seed": seed,
        "draw": asdict(draw),
        "limits": limits,
        "tasks": {each.task: each.as_json() for each in audits},
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
