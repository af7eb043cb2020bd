"""Trainings of `harp adapt` that are so brief that a test has time for them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harp_plugin.commands.adapt import plan, ranking, run
from harp_plugin.commands.adapt.ranking import Systems


def train_briefly(patch: pytest.MonkeyPatch, steps: int) -> None:
    """Make few queries enough to learn from, each training so many steps, and every gain sure."""
    for module in (plan, ranking, run):
        patch.setattr(module, "FEWEST_TRAIN_QUERIES", 1)
    patch.setattr(plan, "_LEAST_SECONDS", 0)
    patch.setattr(plan, "_FEWEST_STEPS", 0)
    patch.setattr(plan, "training_steps", lambda *_: steps)
    gain = Systems._gain
    patch.setattr(Systems, "_gain", lambda *given: replace(gain(*given), is_sure=True))
