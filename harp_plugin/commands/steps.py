"""What the commands of several steps share: the folder, the recipes in it, and the messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import HarpError
from ..options_parser import OptionsParser
from ..work.lock import one_writer
from ..work.provenance import OverwriteRules
from ..work.with_record import FolderWithRecord
from ..work.writing import remove_temporary

__all__ = ["output_folder", "say", "training_arguments"]


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


def training_arguments(
    dataclasses: tuple[type, ...],
    path: Path,
    recipe: dict[str, Any],
    rules: OverwriteRules,
    flags: Sequence[str],
) -> tuple[Any, ...]:
    """Write a recipe of training, and read it as the command of this training does.

    Args:
        dataclasses: of the arguments.
        path: of the recipe.
        recipe: its options.
        rules: what may be replaced.
        flags: further options, which are not written.

    Returns:
        One object for each of the first three dataclasses.
    """
    text = json.dumps(recipe, indent=2)
    FolderWithRecord(path.parent, rules).write(path, f"{text}\n")
    given = (
        ("--overwrite", rules.overwrite),
        ("--accept-other-versions", rules.accept_other_versions),
    )
    flags = [*flags, *(flag for flag, is_given in given if is_given)]
    return OptionsParser(dataclasses, "harp", "").read(flags, str(path))[:3]


def say(step: str, what: str) -> None:
    """Print what begins."""
    print(f"== {step}: {what}", flush=True)
