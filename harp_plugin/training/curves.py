"""A picture of a run: losses, accuracies by task, and what evaluations found, by step."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

logger = logging.getLogger(__name__)

CURVES = "training_curves.png"
COLUMNS = 3
Line = Mapping[str, float]
Panel = dict[str, str]
"""Key in the log by the name that a panel's legend shows."""


def draw_curves(log: Sequence[Line], path: Path) -> None:
    """Draw a training log; without matplotlib, or with nothing logged, say so and draw nothing.

    Args:
        log: entries of the trainer's log, each with its ``step``.
        path: the picture to write.
    """
    panels = panels_of(log)
    if not panels:
        return
    if find_spec("matplotlib") is None:
        logger.info("no %s: run `pip install matplotlib` to have one", path.name)
        return
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    rows = math.ceil(len(panels) / COLUMNS)
    columns = min(len(panels), COLUMNS)
    figure = Figure(figsize=(4.4 * columns, 3.2 * rows), layout="constrained")
    for place, (title, panel) in enumerate(panels.items()):
        axes = figure.add_subplot(rows, columns, place + 1)
        axes.set_title(title, fontsize=10, loc="left")
        for name, key in panel.items():
            _draw(axes, name, [(line["step"], line[key]) for line in log if key in line])
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        _finish(axes, several=len(panel) > 1)
    figure.savefig(path, dpi=120, metadata={"Software": None})


def panels_of(log: Sequence[Line]) -> dict[str, Panel]:
    """What is drawn: each panel by its title."""
    keys = dict.fromkeys(key for line in log for key in line)
    of_losses = [key for key in keys if key.startswith("loss/")]
    of_tasks = [key for key in keys if "/" in key and not key.startswith(("loss/", "eval_"))]
    ranking = [key for key in keys if key.startswith("eval_") and not _is_of_pairs(key)]
    panels: dict[str, Panel] = {}
    if len(of_losses) > 1:
        panels["total loss"] = _with_held_out("loss", keys)
    for key in of_losses:
        panels[f"{key.removeprefix('loss/')} loss"] = _with_held_out(key, keys)
    for kind, title in (("loss", "pair loss by task"), ("accuracy", "pairs in the right order")):
        found = {_task(key): key for key in of_tasks if key.endswith(f"/{kind}")}
        if len(found) > 1 or (found and kind == "accuracy"):
            panels[title] = found
    if "accuracy" in keys and "eval_accuracy" in keys:
        panels["pairs in the right order, held out"] = {"held out": "eval_accuracy"}
    if ranking:
        panels["ranking, validation queries"] = {key.removeprefix("eval_"): key for key in ranking}
    return panels


def _with_held_out(key: str, known: Mapping[str, object]) -> Panel:
    held_out = {"held out": f"eval_{key}"} if f"eval_{key}" in known else {}
    return {"training": key} | held_out


def _is_of_pairs(key: str) -> bool:
    """Whether an evaluation's value is of held-out pairs."""
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
