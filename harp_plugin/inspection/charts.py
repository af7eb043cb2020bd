"""A histogram as the bars of a small picture."""

from __future__ import annotations

from dataclasses import dataclass

from .histograms import Histogram

__all__ = ["Bar", "Chart"]

_WIDTH, _HEIGHT = 320, 118
_TOP, _FLOOR = 14, 102
_GAP = 0.2


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a chart, in pixels: its left edge, its top edge, and its size."""

    series: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Chart:
    """A histogram as bars: the shares of each series in a bin stand side by side.

    Attributes:
        histogram: the one that is drawn.
        width: of the picture, in pixels.
        height: of the picture, in pixels.
        floor: distance of the bars' lower edge from the top, in pixels.
    """

    histogram: Histogram
    width: int = _WIDTH
    height: int = _HEIGHT
    floor: int = _FLOOR

    @property
    def highest(self) -> float:
        """The largest share, which the highest bar shows."""
        return max(max(self.histogram.shares(series)) for series in self.histogram.counts)

    @property
    def bars(self) -> list[Bar]:
        """The bars that are not empty."""
        scale = (_FLOOR - _TOP) / self.highest
        width = self._bin_width * (1 - _GAP) / len(self.histogram.counts)
        return [
            Bar(
                series,
                round(self._bin_width * (place + _GAP / 2) + width * number, 1),
                round(_FLOOR - scale * share, 1),
                round(width - 1, 1),
                round(scale * share, 1),
            )
            for number, series in enumerate(self.histogram.counts)
            for place, share in enumerate(self.histogram.shares(series))
            if share
        ]

    @property
    def labels(self) -> list[tuple[float, str]]:
        """The middle of each bin, in pixels, and its first number."""
        starts = [str(start) for start in self.histogram.starts]
        starts[-1] += "+"
        return [(round(self._bin_width * (n + 0.5), 1), text) for n, text in enumerate(starts)]

    @property
    def _bin_width(self) -> float:
        return self.width / len(self.histogram.starts)
