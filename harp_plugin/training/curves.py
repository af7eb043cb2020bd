"""Draw the losses, the accuracies by task and the evaluations of a run by step."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["CURVES", "draw_curves", "panels_of"]

logger = logging.getLogger(__name__)

CURVES = "training_curves.png"
"""File name of the picture."""
_COLUMNS = 3
_Line = Mapping[str, float]
_Panel = dict[str, str]
"""Keys of the log by the names in the legend of a panel."""


def draw_curves(log: Sequence[_Line], path: Path) -> None:
    """Draw a training log, if there is something to draw and matplotlib is installed.

    Args:
        log: entries of the trainer's log, each with its ``step``.
        path: where to write the picture.
    """
    panels = panels_of(log)
    if not panels:
        return
    if find_spec("matplotlib") is None:
        logger.info("no %s: run `pip install matplotlib` to have one", path.name)
        return
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    rows = math.ceil(len(panels) / _COLUMNS)
    columns = min(len(panels), _COLUMNS)
    figure = Figure(figsize=(4.4 * columns, 3.2 * rows), layout="constrained")
    for place, (title, panel) in enumerate(panels.items()):
        axes = figure.add_subplot(rows, columns, place + 1)
        axes.set_title(title, fontsize=10, loc="left")
        for name, key in panel.items():
            _draw(axes, name, [(line["step"], line[key]) for line in log if key in line])
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        _finish(axes, several=len(panel) > 1)
    figure.savefig(path, dpi=120, metadata={"Software": None})


def panels_of(log: Sequence[_Line]) -> dict[str, _Panel]:
    """Return the panels of the picture by their titles."""
    keys = dict.fromkeys(key for line in log for key in line)
    loss_keys = [key for key in keys if key.startswith("loss/")]
    task_keys = [key for key in keys if "/" in key and not key.startswith(("loss/", "eval_"))]
    ranking = [key for key in keys if key.startswith("eval_") and not _is_pair_value(key)]
    panels: dict[str, _Panel] = {}
    if len(loss_keys) > 1:
        panels["total loss"] = _with_held_out("loss", keys)
    for key in loss_keys:
        panels[f"{key.removeprefix('loss/')} loss"] = _with_held_out(key, keys)
    for kind, title in (("loss", "pair loss by task"), ("accuracy", "pairs in the right order")):
        panel = {_task(key): key for key in task_keys if key.endswith(f"/{kind}")}
        if len(panel) > 1 or (panel and kind == "accuracy"):
            panels[title] = panel
    if "accuracy" in keys and "eval_accuracy" in keys:
        panels["pairs in the right order, held out"] = {"held out": "eval_accuracy"}
    if ranking:
        panels["ranking, validation queries"] = {key.removeprefix("eval_"): key for key in ranking}
    return panels


def _with_held_out(key: str, keys: Mapping[str, object]) -> _Panel:
    """Return the panel of a value in training and, if it is in the log, on held-out pairs."""
    held_out = {"held out": f"eval_{key}"} if f"eval_{key}" in keys else {}
    return {"training": key} | held_out


def _is_pair_value(key: str) -> bool:
    """Return whether a value of an evaluation is measured on held-out pairs."""
    return "/" in key or key in ("eval_loss", "eval_accuracy")


def _task(key: str) -> str:
    return key.rpartition("/")[0]


def _draw(axes: Axes, name: str, points: Sequence[tuple[float, float]]) -> None:
    steps, values = zip(*points, strict=True)
    marker = "o" if len(points) <= 30 else ""
    axes.plot(steps, values, label=name, linewidth=1.4, marker=marker, markersize=3)


def _finish(axes: Axes, *, several: bool) -> None:
    axes.set_xlabel("step", fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.3, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    if several:
        axes.legend(fontsize=8, frameon=False)
