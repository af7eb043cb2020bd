"""Which values of an option make sense: tables of limits, by the option's name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .errors import HarpError

__all__ = [
    "COUNT",
    "MAX_LENGTH",
    "MOST",
    "NUMBER",
    "SEED",
    "SHARE",
    "Limits",
    "check_limits",
]

MOST = 10**9
"""More steps, groups, tokens or results than any run has."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The least and the most that a number may be.

    Attributes:
        least: it may be this or more.
        most: it may be this or less.
        above: it must be more than this.
        below: it must be less than this.
        also: a value that has a meaning of its own.
        meaning: what that value means.
    """

    least: float = -math.inf
    most: float = math.inf
    above: float = -math.inf
    below: float = math.inf
    also: float | None = None
    meaning: str = ""

    def allow(self, value: float) -> bool:
        """Whether a number is within the limits."""
        within = self.least <= value <= self.most and self.above < value < self.below
        return value == self.also or within

    def __str__(self) -> str:
        """The limits in words, such as ``at least 0 and below 1``."""
        words = {
            "at least": self.least,
            "above": self.above,
            "at most": self.most,
            "below": self.below,
        }
        parts = [f"{word} {n:.12g}" for word, n in words.items() if math.isfinite(n)]
        return " and ".join(parts) + (f", or {self.also} {self.meaning}" if self.meaning else "")


COUNT = Limits(least=1, most=MOST)
"""A number of things of which at least one is needed."""
NUMBER = Limits(least=0, most=MOST)
"""A number of things of which none is needed."""
SEED = Limits(least=0, most=2**32 - 1)
"""What NumPy's and PyTorch's generators both take."""
MAX_LENGTH = Limits(least=9, most=MOST)
"""Tokens of a pair that is trained on: a query, a document and the special tokens."""
SHARE = Limits(above=0, below=1)
"""A part of a whole, which is neither nothing nor all of it."""


def check_limits(options: object, limits: Mapping[str, Limits], where: str = "") -> None:
    """Check that numbers are within their limits.

    Args:
        options: a mapping or an object with a value, or a list of values, of each name. None, which
            stands for a default, is within any limits.
        limits: by the names of options.
        where: stands before a name in errors.

    Raises:
        HarpError: a number is not within its limits; the message names the option.
    """
    for name, limit in limits.items():
        value: Any = options[name] if isinstance(options, Mapping) else getattr(options, name)
        for number in value if isinstance(value, list) else [value]:
            if number is not None and not limit.allow(number):
                raise HarpError(f"{where}{name} is {_short(number)}: it must be {limit}")


def _short(number: float) -> str:
    return f"{number:.6g}" if abs(number) > 2**64 else repr(number)
