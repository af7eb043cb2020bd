"""The options of a fusion, and what they may be."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import HarpError

__all__ = ["CANDIDATES", "NORMALISATIONS", "check_fusion", "check_weights"]

CANDIDATES = ("first", "union")
"""Which documents are ranked: those of the first system, or of any."""
NORMALISATIONS = ("zscore", "minmax", "rrf")
"""How the scores of a query are brought to one scale."""


def check_fusion(systems: Mapping[str, Any], normalization: str, candidates: str) -> None:
    """Check the systems and the options of a fusion.

    Raises:
        HarpError: there are fewer than two systems, or an option has an unknown value.
    """
    if len(systems) < 2:
        raise HarpError(f"{len(systems)} systems cannot be fused: name at least two")
    if normalization not in NORMALISATIONS:
        known = ", ".join(NORMALISATIONS)
        raise HarpError(f"unknown normalization {normalization!r:.60}: choose one of {known}")
    if candidates not in CANDIDATES:
        known = ", ".join(CANDIDATES)
        raise HarpError(f"unknown candidates {candidates!r:.60}: choose one of {known}")


def check_weights(names: Sequence[str], weights: Mapping[str, float] | None) -> dict[str, float]:
    """Check the weights of systems, and put them into the order of the systems.

    Raises:
        HarpError: a system has no weight, a weight belongs to no system, is negative or no finite
            number, or all weights are 0.
    """
    if weights is None:
        return dict.fromkeys(names, 1.0)
    if unknown := [name for name in weights if name not in names]:
        raise HarpError(f"there is no system {unknown[0]!r} for its weight: {', '.join(names)} are")
    if missing := [name for name in names if name not in weights]:
        raise HarpError(f"system {missing[0]!r} has no weight: give each one, 0 to leave it out")
    values = {name: float(weights[name]) for name in names}
    if not all(math.isfinite(value) and value >= 0 for value in values.values()):
        raise HarpError(f"weights are {values}: each must be a finite number and not negative")
    if not any(values.values()):
        raise HarpError("all weights are 0: give one system a weight")
    return values
