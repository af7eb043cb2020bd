"""The commands of `harp`: a table, and one file each, which is imported when it is used."""

from __future__ import annotations

import json
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING

from ..errors import HarpError, user_message

if TYPE_CHECKING:
    from ..options_parser import Command

__all__ = ["COMMANDS", "load", "stored_help"]

_DATA = files("harp_plugin") / "data"
COMMANDS: dict[str, str] = json.loads((_DATA / "commands.json").read_text("utf-8"))
"""What each command does; it is the object ``command`` of the file of its name."""

_EXTRAS = {"train": "train", "finetune": "train", "evaluate": "pyterrier", "rerank": "pyterrier"}
_EXTRAS |= dict.fromkeys(("build", "inspect", "export", "check"), "build")
"""The extra of this package that a command needs; others need ``all``."""


def stored_help(name: str) -> str:
    """Read the help of a command from the package: its options would take seconds to import."""
    return json.loads((_DATA / "help.json").read_text("utf-8"))[name]


def load(name: str) -> Command:
    """Import a command.

    Raises:
        HarpError: a package that it needs is not installed.
    """
    try:
        return import_module(f"{__name__}.{name.replace('-', '_')}").command
    except ModuleNotFoundError as error:
        if user_message(error) is None:
            raise
        extra = f"harp-plugin[{_EXTRAS.get(name, 'all')}]"
        raise HarpError(f"harp {name} needs {error.name}: run `pip install '{extra}'`") from error
