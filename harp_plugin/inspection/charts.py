"""A histogram as the bars of a small picture."""

from __future__ import annotations

from dataclasses import dataclass

from .histograms import Histogram

WIDTH, HEIGHT = 320, 118
_TOP, _FLOOR = 14, 102
_GAP = 0.2


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a chart, in units of its picture: the left, the top, and its size."""

    series: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Chart:
    """A histogram drawn: each series' share of every bin, side by side.

    Attributes:
        histogram: what is drawn.
        width: of the picture.
        height: of the picture.
        floor: where the bars stand.
    """

    histogram: Histogram
    width: int = WIDTH
    height: int = HEIGHT
    floor: int = _FLOOR

    @property
    def highest(self) -> float:
        """The largest share, as high as the picture goes."""
        return max(max(self.histogram.shares(series)) for series in self.histogram.counts)

    @property
    def bars(self) -> list[Bar]:
        """The bars that are not empty."""
        scale = (_FLOOR - _TOP) / self.highest
        width = self._step * (1 - _GAP) / len(self.histogram.counts)
        return [
            Bar(
                series,
                round(self._step * (place + _GAP / 2) + width * number, 1),
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
        """The first number of each bin, and the middle of where it stands."""
        starts = [str(start) for start in self.histogram.starts]
        starts[-1] += "+"
        return [(round(self._step * (n + 0.5), 1), text) for n, text in enumerate(starts)]

    @property
    def _step(self) -> float:
        return self.width / len(self.histogram.starts)
