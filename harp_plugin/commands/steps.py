"""What the commands of several steps share: the folder and the messages."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from textwrap import fill
from typing import Any

from ..work.lock import one_writer
from ..work.writing import remove_temporary

__all__ = ["elapsed", "in_words", "options_of_every_step", "output_folder", "say", "tell"]

_IMPORTED = time.monotonic()
_BEGAN = ContextVar("began", default=_IMPORTED)
"""When the command began, in seconds of `time.monotonic`."""


@contextmanager
def output_folder(folder: Path) -> Iterator[None]:
    """Make the folder of a command, in which nobody else writes meanwhile.

    Raises:
        HarpError: the folder cannot be written, or another command writes there.
    """
    with one_writer(folder):
        remove_temporary(folder)
        _BEGAN.set(time.monotonic())
        yield


def options_of_every_step(options: Any) -> dict[str, Any]:
    """Return the options of a command that each of its steps has too."""
    names = ("overwrite", "accept_other_versions", "quiet")
    return {name: getattr(options, name) for name in names}


def elapsed() -> float:
    """Return how long the command has run, in seconds."""
    return time.monotonic() - _BEGAN.get()


def say(step: str, what: str) -> None:
    """Print what begins, and how long the command has run before."""
    minutes, seconds = divmod(round(elapsed()), 60)
    tell(f"== {step} (after {minutes}:{seconds:02} min): {what}")


def tell(message: str) -> None:
    """Print a message in lines of at most 80 columns."""
    print(fill(message, 80, break_long_words=False, break_on_hyphens=False), flush=True)


def in_words(seconds: float) -> str:
    """Write a duration, such as ``1 h 30 min``."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(minutes, 60)
    return " ".join([f"{hours} h"] * (hours > 0) + [f"{minutes} min"] * (minutes > 0))
