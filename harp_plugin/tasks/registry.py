"""The registry of pre-training tasks.

Other packages add theirs by an entry point in the group ``harp_plugin.tasks``.
"""

from ..registry import Registry
from .acm import ACM
from .base import Task
from .qdm import QDM
from .rdp import RDP
from .rqp import RQP

TASKS: Registry[type[Task]] = Registry("harp_plugin.tasks", "task")
HARP_TASKS = ("rqp", "qdm", "rdp", "acm")

TASKS.register("rqp")(RQP)
TASKS.register("qdm")(QDM)
TASKS.register("rdp")(RDP)
TASKS.register("acm")(ACM)
