"""`harp inspect`: counts and sample pairs of a build."""

from __future__ import annotations

from ..errors import show
from ..inspection import InspectOptions, inspect
from ..options_parser import BUILD, Command
from ..tasks.options import DrawOptions

__all__ = ["command"]


@Command("DIR", InspectOptions, DrawOptions, positional=BUILD)
def command(options: InspectOptions, draw: DrawOptions, directory: str) -> None:
    """The counts stand next to Table 1 of the HARP paper.

    The page has sample pairs of each task.
    """
    show(inspect(directory, options, draw))
