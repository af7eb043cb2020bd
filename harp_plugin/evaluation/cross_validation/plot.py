"""The plot: measures over the number of training queries, as HARP's Figure 4."""

from __future__ import annotations

import io
from typing import Any

from ..results import star_note, starred
from .results import CrossValidation

__all__ = ["draw"]

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""The colors of Okabe and Ito, which color-blind readers can tell apart."""
_MARKERS = "osD^vP*X"
_STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "harp",
    "svg.fonttype": "none",
    "text.parse_math": False,
}


def draw(results: CrossValidation, kind: str) -> bytes:
    """Draw a panel for each measure.

    Each system has a line, and the first stage a dashed one. Stars mark significance. With several
    seeds a bar shows one standard deviation over them.

    Args:
        results: of the cross-validation.
        kind: ``png`` or ``svg``.

    Returns:
        The file's content, the same bytes for the same results.
    """
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        measures = results.measures
        figure = Figure(figsize=(3.4 * len(measures) + 0.4, 3.4), layout="constrained")
        panels = figure.subplots(1, len(measures), squeeze=False)[0]
        for panel, measure in zip(panels, measures, strict=True):
            _panel(panel, results, measure)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=min(4, len(labels)))
        caption = f"{results.title}. {star_note(results.baseline, results.correction)}"
        figure.suptitle(caption, fontsize=8, y=0.0, va="top")
        content = io.BytesIO()
        metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
        figure.savefig(content, format=kind, dpi=200, bbox_inches="tight", metadata=metadata)
    return content.getvalue()


def _panel(panel, results: CrossValidation, measure: str) -> None:
    first, *systems = results.rows
    means, tests = results.by_count(measure), results.tests(measure)
    positions = range(len(results.counts))
    panel.axhline(means[first][results.counts[0]], color="0.4", linestyle="--", label=first)
    for number, row in enumerate(systems):
        heights = list(means[row].values())
        bars = [results.deviations.get(c, {}).get(row, {}).get(measure) for c in results.counts]
        style = {
            "color": _COLOURS[number % len(_COLOURS)],
            "marker": _MARKERS[number % len(_MARKERS)],
        }
        yerr = bars if any(bars) else None
        panel.errorbar(positions, heights, yerr=yerr, capsize=3, label=row, **style)
        star = {"textcoords": "offset points", "ha": "center", "fontsize": 12}
        for point, p_value in zip(enumerate(heights), tests.get(row, {}).values(), strict=False):
            if starred(p_value):
                panel.annotate("*", point, (0, 2), color=style["color"], **star)
    panel.set_xticks(list(positions), [_tick(results, count) for count in results.counts])
    panel.set_xlabel("training queries")
    panel.set_ylabel(measure)
    panel.margins(x=0.08, y=0.12)
    panel.grid(axis="y", color="0.9")


def _tick(results: CrossValidation, count: str) -> str:
    learnt = results.learnt[count]
    return count if learnt == count else f"{count} ({learnt})"
