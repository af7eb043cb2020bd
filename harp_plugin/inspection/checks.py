"""The checks of `harp inspect`: what each measures, when that is too much, and what to do then.

Other packages add theirs by an entry point in the group ``harp_plugin.checks``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from ..registry import Registry
from ..tasks import TASKS
from . import measurements
from .groups import AuditedGroups
from .measurements import Measure, Measurement, compared, compared_pairs, compared_texts
from .probes import document_probe, query_probe

__all__ = ["CHECKS", "GREEN_UP_TO", "TOO_EASY", "YELLOW_UP_TO", "Check", "CheckResult", "Level"]

GREEN_UP_TO, YELLOW_UP_TO = 0.60, 0.65
"""How often a guess that does not read may be right; one half is chance."""
TOO_EASY = 0.90
"""How often a baseline may be right: above, the negatives are too easy."""
_CHANCE = 0.5
_DIGITS = 4


class Level(IntEnum):
    """What the result of a check asks for: nothing, a look, or a change."""

    GREEN = 0
    YELLOW = 1
    RED = 2

    @property
    def sign(self) -> str:
        """A sign that differs from those of the other levels without its color."""
        return "✓▲✕"[self]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check says about a task.

    Attributes:
        name: of the check, in `audit.json`.
        label: name of the check for people.
        measurement: what it measures; where the opposite guess is right more often, that of the
            opposite guess.
        level: what that asks for.
        advice: one sentence on what to do; empty where nothing is to be done.
        is_reversed: the opposite guess is judged.
        is_baseline: it reads a little, and is not a fault if it is right.
    """

    name: str
    label: str
    measurement: Measurement
    level: Level
    advice: str
    is_reversed: bool = False
    is_baseline: bool = False

    @property
    def value_text(self) -> str:
        """The value as people read it."""
        return f"{100 * self.measurement.value:.1f} %{' reversed' if self.is_reversed else ''}"

    @property
    def interval_text(self) -> str:
        """The 95 % interval of the value as people read it."""
        return "–".join(f"{100 * end:.1f}" for end in self.measurement.interval)

    def as_json(self) -> dict[str, Any]:
        """Its entry in `audit.json`."""
        return {
            "name": self.name,
            "kind": "baseline" if self.is_baseline else "rule",
            "value": round(self.measurement.value, _DIGITS),
            "interval": [round(end, _DIGITS) for end in self.measurement.interval],
            "reversed": self.is_reversed,
            "decided": round(self.measurement.decided, _DIGITS),
            "pairs": self.measurement.pairs,
            "groups": self.measurement.groups,
            "level": self.level.name.lower(),
            "advice": self.advice,
        }


@dataclass(frozen=True, slots=True)
class Check:
    """One thing by which the positive may be told without reading.

    Attributes:
        label: its name for people.
        measure: measures it in the groups of a task; None where it does not apply to the task.
        advice: one sentence on what to do where the level is not green.
        task_advice: other advice for a task, by the task's name.
        has_opposite: a guess that is mostly wrong is judged by its opposite.
        by_design: why it says nothing against a task, by the task's name; it is green there. A
            task may say so itself, in its attribute ``by_design``.
        is_baseline: tells whether the check reads a little in a task's groups, so that only its
            opposite is a fault.
        too_easy: a baseline that is right more often is yellow.
    """

    label: str
    measure: Measure
    advice: str
    task_advice: Mapping[str, str] = field(default_factory=dict)
    has_opposite: bool = True
    by_design: Mapping[str, str] = field(default_factory=dict)
    is_baseline: Callable[[AuditedGroups], bool] = lambda groups: False
    too_easy: float = TOO_EASY

    def run(self, name: str, groups: AuditedGroups) -> CheckResult | None:
        """Measure and judge a task; None where the check does not apply to it."""
        measured = self.measure(groups)
        if measured is None:
            return None
        is_reversed = self.has_opposite and measured.value < _CHANCE
        is_baseline = self.is_baseline(groups)
        judged = measured.of_the_opposite() if is_reversed else measured
        design = self.by_design.get(groups.task) or _own_design(groups.task, name)
        if design:
            level, advice = Level.GREEN, design
        elif is_baseline and not is_reversed:
            is_easy = judged.value > self.too_easy
            level, advice = (Level.YELLOW, _HARDER) if is_easy else (Level.GREEN, "")
        else:
            level, advice = self._judge_rule(groups.task, judged)
        return CheckResult(name, self.label, judged, level, advice, is_reversed, is_baseline)

    def _judge_rule(self, task: str, judged: Measurement) -> tuple[Level, str]:
        if judged.value <= GREEN_UP_TO:
            return Level.GREEN, ""
        low, high = judged.interval
        if low <= _CHANCE <= high:
            return Level.YELLOW, _TOO_FEW_GROUPS
        level = Level.YELLOW if judged.value <= YELLOW_UP_TO else Level.RED
        return level, self.task_advice.get(task, self.advice)


def _own_design(task: str, check: str) -> str | None:
    """Return what a task says of a check that is not a fault of it."""
    declared = getattr(TASKS[task], "by_design", {}) if task in TASKS else {}
    return declared.get(check)


_TOO_FEW_GROUPS = (
    "Too few groups to tell it from chance: look at more with --table-groups, or build from more "
    "pages."
)
_HARDER = (
    "The negatives are easy to tell from the positive: draw harder ones, with --negatives bm25."
)
_ONE_KIND = "Draw the queries of both sides from texts of one kind."
_ONE_CASE = "Write the queries of both sides alike: in lower case, or as they stand in a text."
_OTHER_QUERY = "Take S2 from another anchor: --rqp-negative-words anchors_on_page."


def _matching(label: str, measure: Measure, **fields: Any) -> Check:
    """Make a check that counts how the words of a query match its document.

    It is a baseline where the documents of a group differ: the better document should match more.
    It is a rule where one document has several queries, which are drawn by rules, too: how often
    their words stand in the document must not tell which of them leads to it.
    """
    usual: dict[str, Any] = {
        "is_baseline": lambda groups: groups.differ("document"),
        "task_advice": {"rqp": _OTHER_QUERY},
    }
    return Check(
        label,
        measure,
        "Words alone tell them apart: draw the words of both queries from texts of one kind, and "
        "check that positives and negatives are not swapped.",
        by_design={
            "prop": "This is the task: the likelier set of words is the one that the document has "
            "more of.",
            "rwi": "This is the task: the titles of a section should name what its text is about.",
        },
        **(usual | fields),
    )


_OURS = {
    "longer_query": Check(
        "longer query",
        compared_texts("query", measurements.word_count),
        "Draw the queries of positives and negatives equally long.",
        {"rqp": "Draw S2 as long as S1: --negative-query-length equal."},
    ),
    "longer_document": Check(
        "longer document",
        compared_texts("document", measurements.word_count),
        "Leave out pages with short leads: build with --min-lead-words 30 or more.",
    ),
    "more_capitals": Check(
        "more capitals in the query",
        compared_texts("query", measurements.fraction_of_capitals),
        _ONE_CASE,
    ),
    "first_capital": Check(
        "query begins with a capital",
        compared_texts("query", measurements.first_capital),
        _ONE_CASE,
    ),
    "more_in_links": Check(
        "page with more in-links",
        compared(lambda each, _: each.in_links, "document"),
        "Draw negatives as often as links lead to them: --negatives in_links.",
        {"rdp": "Pair pages of similar numbers of in-links: --rdp-max-in-link-ratio 4, or less."},
    ),
    "commoner_target": Check(
        "commoner target of the anchor",
        compared(lambda each, _: each.occurrences, "document"),
        "Draw each page that a text leads to as often as the others: the commoner one is guessed "
        "without reading.",
        by_design={
            "anchor": "This is the task: its text leads to no negative. The model does not see the "
            "link graph."
        },
    ),
    "document_probe": Check(
        "document alone, by a model",
        document_probe,
        "Positives and negatives are of different kinds: draw negatives from pages or sections "
        "like the positives, with --negatives in_links or bm25.",
        has_opposite=False,
    ),
    "query_probe": Check(
        "query alone, by a model", query_probe, _ONE_KIND, {"rqp": _OTHER_QUERY}, has_opposite=False
    ),
    "more_shared_words": _matching("more words shared", compared_pairs(measurements.shared_words)),
    "higher_term_frequency": _matching(
        "higher term frequency", compared_pairs(measurements.term_frequency)
    ),
    "earlier_word": _matching(
        "query word stands earlier",
        compared_pairs(measurements.nearness_to_start),
        task_advice={
            "rqp": "A lead begins with its page's title, and so do many anchors: build with "
            "--title-anchors 0.5, and take S2 from another anchor (--rqp-negative-words "
            "anchors_on_page)."
        },
    ),
    "higher_bm25": _matching("higher BM25", measurements.higher_bm25),
    "higher_cosine": _matching(
        "higher cosine of the encoder",
        measurements.higher_cosine,
        is_baseline=lambda groups: True,  # an encoder reads, however little it knows of queries
        too_easy=1.0,
    ),
}

CHECKS: Registry[Check] = Registry("harp_plugin.checks", "check", _OURS)
"""The checks, in the order in which a report lists them."""
