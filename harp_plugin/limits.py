"""Which values of an option make sense: tables of limits, by the option's name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .errors import HarpError

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
        given = [f"{word} {n:.12g}" for word, n in words.items() if math.isfinite(n)]
        return " and ".join(given) + (f", or {self.also} {self.meaning}" if self.meaning else "")


COUNT = Limits(least=1, most=MOST)
"""Of whatever there must be one of."""
NUMBER = Limits(least=0, most=MOST)
SEED = Limits(least=0, most=2**32 - 1)
"""What NumPy's and PyTorch's generators both take."""
MAX_LENGTH = Limits(least=9, most=MOST)
"""Tokens of a pair that is trained on: a query, a document and the special tokens."""
PAIR = Limits(least=4, most=MOST)
"""Tokens of a pair that is scored; each model says more exactly what it takes."""
SHARE = Limits(above=0, below=1)


def check_limits(options: object, limits: Mapping[str, Limits], where: str = "") -> None:
    """Find that numbers make sense.

    Args:
        options: has an attribute, or as a mapping a value, of each name; None stands for a default.
        limits: by the name.
        where: stands before a name in errors.

    Raises:
        HarpError: a number is not within its limits; the message names the option.
    """
    for name, limit in limits.items():
        value: Any = options[name] if isinstance(options, Mapping) else getattr(options, name)
        for one in value if isinstance(value, list) else [value]:
            if one is not None and not limit.allow(one):
                raise HarpError(f"{where}{name} is {_short(one)}: it must be {limit}")


def _short(number: float) -> str:
    return f"{number:.6g}" if abs(number) > 2**64 else repr(number)
