"""What the commands of several steps share: the folder and the messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill
from typing import Any

from ..errors import HarpError
from ..work.lock import one_writer
from ..work.writing import remove_temporary

__all__ = ["options_of_every_step", "output_folder", "say", "tell"]


@contextmanager
def output_folder(folder: Path) -> Iterator[None]:
    """Make the folder of a command, in which nobody else writes meanwhile.

    Raises:
        HarpError: the folder cannot be written, or another command writes there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HarpError(f"cannot write to {folder} ({error}): name another --output-dir") from error
    with one_writer(folder):
        remove_temporary(folder)
        yield


def options_of_every_step(options: Any) -> dict[str, Any]:
    """Return the options of a command that each of its steps has too."""
    names = ("overwrite", "accept_other_versions", "quiet")
    return {name: getattr(options, name) for name in names}


def say(step: str, what: str) -> None:
    """Print what begins."""
    tell(f"== {step}: {what}")


def tell(message: str) -> None:
    """Print a message in lines of at most 80 columns."""
    print(fill(message, 80, break_long_words=False, break_on_hyphens=False), flush=True)
