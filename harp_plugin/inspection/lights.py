"""When a figure of the audit is green, yellow or red: all thresholds stand here."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Light(StrEnum):
    """What a figure asks for: nothing, a look, or a change."""

    GREEN = "green"
    YELLOW = "yellow"
    RED = "red"

    @property
    def severity(self) -> int:
        """From 0 (green) to 2 (red)."""
        return list(Light).index(self)

    @property
    def sign(self) -> str:
        """A sign that is told from the others without its colour."""
        return "✓▲✕"[self.severity]


class Limits(NamedTuple):
    """A share is green up to one limit, yellow up to the other, red above."""

    green: float
    yellow: float

    def light(self, share: float) -> Light:
        """The light of a share."""
        if share > self.yellow:
            return Light.RED
        return Light.YELLOW if share > self.green else Light.GREEN


RULE = Limits(0.60, 0.65)
"""How often a rule that does not read is right, or its reverse; one half is chance."""

FIGURES = {
    "repeated_groups": Limits(0.01, 0.05),
    "repeated_pairs": Limits(0.05, 0.20),
    "negative_is_positive": Limits(0.0, 0.001),
    "negative_linked": Limits(0.01, 0.05),
    "functional_anchors": Limits(0.01, 0.05),
    "title_in_query": Limits(0.20, 0.30),
    "pages_seen": Limits(0.50, 0.75),
    "frequent_pages": Limits(0.10, 0.25),
}
"""Limits of the other figures: of the share itself, but for two.

``title_in_query`` is judged by how much the positives' share exceeds the negatives' (0.30 is a rule
that is right in 65 %), ``pages_seen`` by the share that is missing of the pages that as many even
draws would show.
"""
