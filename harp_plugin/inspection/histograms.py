"""How long queries and documents are, and how heavy the sampled words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .observations import Observation, size

_BINS = 16
_STEPS = (1, 2, 5)
_RANKS = (1, 2, 3, 5, 9, 17, 33, 65, 129)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of whole numbers in bins.

    Attributes:
        name: in `audit.json`.
        label: for people.
        starts: first number of each bin; the last bin is open.
        counts: by name of a series, one number for each bin.
    """

    name: str
    label: str
    starts: tuple[int, ...]
    counts: dict[str, tuple[int, ...]]

    @property
    def bins(self) -> list[str]:
        """The bins as people read them."""
        ends = [start - 1 for start in self.starts[1:]]
        closed = zip(self.starts, ends, strict=False)
        named = [f"{start}" if start == end else f"{start}–{end}" for start, end in closed]
        return [*named, f"{self.starts[-1]}+"]

    def shares(self, series: str) -> list[float]:
        """Share of each bin in a series."""
        total = sum(self.counts[series])
        return [count / total if total else 0.0 for count in self.counts[series]]

    @property
    def text(self) -> str:
        """All of it in words."""
        told = []
        for place, name in enumerate(self.bins):
            each = (f"{100 * self.shares(s)[place]:.0f} % of {s}s" for s in self.counts)
            told.append(f"{name}: {', '.join(each)}")
        return f"{self.label}. {'; '.join(told)}"

    def as_json(self) -> dict[str, Any]:
        """Its entry in `audit.json`."""
        counts = {name: list(counts) for name, counts in self.counts.items()}
        return {"name": self.name, "starts": list(self.starts), "counts": counts}


def histograms(observations: list[Observation]) -> Iterator[Histogram]:
    """Lengths in words of both sides, and ranks of the sampled words where there are any."""
    members = [each.group.members for each in observations]
    for name, side in (("query_words", "query"), ("document_words", "document")):
        positives = [size(getattr(group[0], side)) for group in members]
        negatives = [size(getattr(pair, side)) for group in members for pair in group[1:]]
        series = {"positive": positives, "negative": negatives}
        yield _histogram(name, f"words in the {side}", _starts(positives + negatives), series)
    ranks = {
        "positive": [rank for each in observations for rank in each.ranks[0]],
        "negative": [rank for each in observations for found in each.ranks[1:] for rank in found],
    }
    if any(ranks.values()):
        ranks = {name: found for name, found in ranks.items() if found}
        yield _histogram("term_ranks", "rank of a sampled word in its text", _RANKS, ranks)


def _starts(numbers: Sequence[int]) -> tuple[int, ...]:
    """Starts of bins of one round width, so that all but the longest 1 % lie in closed ones."""
    low, high = min(numbers), int(np.quantile(numbers, 0.99))
    step = next(
        step
        for step in (digit * 10**power for power in range(10) for digit in _STEPS)
        if high - low // step * step < step * _BINS
    )
    first = low // step * step
    return tuple(range(first, max(high, first) + 2, step))


def _histogram(
    name: str, label: str, starts: tuple[int, ...], series: dict[str, list[int]]
) -> Histogram:
    counts = {
        key: tuple(np.histogram(numbers, [*starts, np.inf])[0].tolist())
        for key, numbers in series.items()
    }
    return Histogram(name, label, starts, counts)
