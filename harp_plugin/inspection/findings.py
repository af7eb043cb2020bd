"""A figure of the audit, with its light and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .lights import Light
from .rules import Outcome

_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Finding:
    """One figure on one task.

    Attributes:
        name: in `audit.json`.
        label: for people.
        share: of pairs, groups or pages; of a rule, how often it is right.
        light: what it asks for.
        advice: one sentence on what to do.
        outcome: of a rule, how it was counted.
        is_reversed: the reverse of a rule is right more often, and judged instead.
        negatives: the like share of the negatives, where the two are compared.
    """

    name: str
    label: str
    share: float
    light: Light
    advice: str
    outcome: Outcome | None = None
    is_reversed: bool = False
    negatives: float | None = None

    @property
    def judged(self) -> float:
        """The share; of a reversed rule the reverse's."""
        return 1 - self.share if self.is_reversed else self.share

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of a rule's `judged`."""
        if self.outcome is None:
            return None
        low, high = self.outcome.interval
        return (1 - high, 1 - low) if self.is_reversed else (low, high)

    @property
    def text(self) -> str:
        """The figure as people read it."""
        text = f"{100 * self.judged:.1f} %{' reversed' if self.is_reversed else ''}"
        return text if self.negatives is None else f"+ {text}, − {100 * self.negatives:.1f} %"

    @property
    def interval_text(self) -> str:
        """The interval as people read it; empty where there is none."""
        return "–".join(f"{100 * end:.1f}" for end in self.interval or ())

    def as_json(self) -> dict[str, Any]:
        """Its entry in `audit.json`."""
        entry: dict[str, Any] = {"name": self.name}
        if self.outcome is None:
            entry["share"] = round(self.share, _DIGITS)
            if self.negatives is not None:
                entry["share_of_negatives"] = round(self.negatives, _DIGITS)
        else:
            entry |= {
                "accuracy": round(self.share, _DIGITS),
                "interval": [round(end, _DIGITS) for end in self.outcome.interval],
                "reversed": self.is_reversed,
                "decided": round(self.outcome.decided_share, _DIGITS),
                "pairs": self.outcome.pairs,
                "groups": self.outcome.groups,
            }
        return entry | {"light": self.light.value, "advice": self.advice}
