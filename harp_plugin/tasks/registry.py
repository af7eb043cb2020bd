"""The registry of pre-training tasks.

Other packages add theirs by an entry point in the group ``harp_plugin.tasks``.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from ..errors import HarpError
from ..options import Options, option
from ..registry import Registry
from .acm import ACM
from .anchor import AnchorText
from .ati import ATI
from .base import Task
from .bfs import BFS
from .codoc import CoDoc
from .crop import Crop
from .hlp import HLP
from .ict import ICT
from .ltm import LTM
from .options import HARD_NEGATIVES, DrawOptions
from .php import PHP
from .prop import ROP
from .qdm import QDM
from .rdp import RDP
from .rqp import RQP
from .rwi import RWI
from .srr import SRR
from .wlp import WLP

__all__ = ["HARP_TASKS", "TASKS", "ExampleOptions", "check_negatives", "needed_stages"]

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
        "codoc": CoDoc,
        "hlp": HLP,
        "php": PHP,
        "anchor": AnchorText,
        "crop": Crop,
    },
)
HARP_TASKS = ("rqp", "qdm", "rdp", "acm")


@dataclass(kw_only=True)
class ExampleOptions(Options):
    """Tasks of which a build makes examples.

    Attributes:
        tasks: Pre-training tasks for which examples are made.
    """

    tasks: list[str] = option(list(HARP_TASKS))


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
    """List the stages that a build for these tasks needs.

    Args:
        tasks: names of the tasks.
        draw: how pairs are drawn; None for the default. Hard negatives are stages of their own.

    Raises:
        HarpError: a task is unknown.
    """
    tasks, names, draw = list(tasks), ["corpus", "graph"], draw or DrawOptions()
    for task in tasks:
        stages = getattr(TASKS[task], "stages", ("weights",))
        names += stages(draw) if callable(stages) else stages
    names.append("examples")
    draws_pages = any(getattr(TASKS[task], "negative_queries", None) for task in tasks)
    if draws_pages and draw.negatives in HARD_NEGATIVES:
        names.append(f"{draw.negatives}_negatives")
    return tuple(dict.fromkeys(names))
