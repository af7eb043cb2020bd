"""How long queries and documents are, and how much weight the sampled words have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .measurements import word_count
from .observations import Observation

__all__ = ["Histogram", "histograms"]

_BINS = 16
_STEPS = (1, 2, 5)
_RANKS = (1, 2, 3, 5, 9, 17, 33, 65, 129)


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of whole numbers in bins.

    Attributes:
        name: in `audit.json`.
        label: its name for people.
        starts: first number of each bin; the last bin has no end.
        counts: one number for each bin, by the name of a series.
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
        texts = [f"{start}" if start == end else f"{start}–{end}" for start, end in closed]
        return [*texts, f"{self.starts[-1]}+"]

    def shares(self, series: str) -> list[float]:
        """Share of each bin in a series."""
        total = sum(self.counts[series])
        return [count / total if total else 0.0 for count in self.counts[series]]

    @property
    def text(self) -> str:
        """The whole histogram in words."""
        texts = []
        for place, name in enumerate(self.bins):
            shares = (f"{100 * self.shares(s)[place]:.0f} % of {s}s" for s in self.counts)
            texts.append(f"{name}: {', '.join(shares)}")
        return f"{self.label}. {'; '.join(texts)}"

    def as_json(self) -> dict[str, Any]:
        """Its entry in `audit.json`."""
        counts = {name: list(counts) for name, counts in self.counts.items()}
        return {"name": self.name, "starts": list(self.starts), "counts": counts}


def histograms(observations: list[Observation]) -> Iterator[Histogram]:
    """Histograms of the words of both sides, and of the ranks of sampled words if there are any."""
    members = [each.group.members for each in observations]
    for name, side in (("query_words", "query"), ("document_words", "document")):
        positives = [word_count(getattr(group[0], side)) for group in members]
        negatives = [word_count(getattr(pair, side)) for group in members for pair in group[1:]]
        series = {"positive": positives, "negative": negatives}
        yield _histogram(name, f"words in the {side}", _starts(positives + negatives), series)
    ranks = {
        "positive": [rank for each in observations for rank in each.ranks[0]],
        "negative": [rank for each in observations for query in each.ranks[1:] for rank in query],
    }
    if any(ranks.values()):
        ranks = {name: numbers for name, numbers in ranks.items() if numbers}
        yield _histogram("term_ranks", "rank of a sampled word in its text", _RANKS, ranks)


def _starts(numbers: Sequence[int]) -> tuple[int, ...]:
    """Starts of bins of one round width; at most the longest 1 % lie in the last bin."""
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
