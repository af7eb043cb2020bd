"""The registry of pre-training tasks.

Other packages add theirs by an entry point in the group ``harp_plugin.tasks``.
"""

from collections.abc import Iterable

from ..errors import HarpError
from ..registry import Registry
from .acm import ACM
from .anchor import AnchorText
from .ati import ATI
from .base import Task
from .bfs import BFS
from .crop import Crop
from .hlp import HLP
from .ict import ICT
from .ltm import LTM
from .options import DrawOptions
from .php import PHP
from .prop import ROP
from .qdm import QDM
from .rdp import RDP
from .rqp import RQP
from .rwi import RWI
from .srr import SRR
from .wlp import WLP

__all__ = ["HARP_TASKS", "STAGES", "TASKS", "check_negatives", "needed_stages"]

TASKS: Registry[type[Task]] = Registry(
    "harp_plugin.tasks",
    "task",
    {
        "rqp": RQP,
        "qdm": QDM,
        "rdp": RDP,
        "acm": ACM,
        "prop": ROP,
        "srr": SRR,
        "rwi": RWI,
        "ati": ATI,
        "ltm": LTM,
        "ict": ICT,
        "bfs": BFS,
        "wlp": WLP,
        "hlp": HLP,
        "php": PHP,
        "anchor": AnchorText,
        "crop": Crop,
    },
)
HARP_TASKS = ("rqp", "qdm", "rdp", "acm")
STAGES = (
    "corpus",
    "graph",
    "words",
    "weights",
    "examples",
    "bm25_negatives",
    "model_negatives",
    "dense_negatives",
    "query_likeness",
)
"""Stages of a build, in order."""


def check_negatives(tasks: Iterable[str], draw: DrawOptions) -> None:
    """Check that the option ``negatives`` changes what the tasks draw.

    Raises:
        HarpError: a task is unknown, or none draws other pages, and ``negatives`` is not ``task``.
    """
    tasks = list(tasks)
    queries = [getattr(TASKS[task], "negative_queries", None) for task in tasks]
    if draw.negatives != "task" and not any(queries):
        raise HarpError(
            f"--negatives {draw.negatives}: no task of {', '.join(tasks)} draws other pages: "
            "leave the option out, or add a task that does, such as anchor"
        )


def needed_stages(tasks: Iterable[str], draw: DrawOptions | None = None) -> tuple[str, ...]:
    """List the stages that a build for these tasks needs, in order.

    Args:
        tasks: names of the tasks.
        draw: how pairs are drawn; None where nothing is drawn. Hard negatives, and the context of
            an anchor text, are stages of their own.

    Raises:
        HarpError: a task is unknown.
    """
    tasks, names = list(tasks), {"corpus", "graph", "examples"}
    for task in tasks:
        names.update(getattr(TASKS[task], "stages", ("weights",)))
    if draw is not None:
        if any(getattr(TASKS[task], "negative_queries", None) for task in tasks):
            names.add(f"{draw.negatives}_negatives")
        if "anchor" in tasks and draw.anchor_query == "context":
            names.add("weights")
        if "anchor" in tasks and (draw.query_like_share or 1) < 1:
            names.add("query_likeness")
    return tuple(stage for stage in STAGES if stage in names)
