"""Checks of the places where a command is asked to write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..errors import HarpError

__all__ = ["refuse_input", "refuse_special"]


def refuse_special(path: Path, output: str) -> None:
    """Refuse to write where something lies that is no plain file.

    Args:
        path: where a file is to be written.
        output: the option that names another place, for errors.

    Raises:
        HarpError: there is a folder, a link, a device or the like.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()):
        kind = "a link" if path.is_symlink() else "a folder" if path.is_dir() else "no plain file"
        raise HarpError(f"{path} is {kind}: name another {output}")


def refuse_input(output: Path, inputs: Mapping[str, str | Path], option: str) -> None:
    """Refuse to write to a file that is read.

    Args:
        output: a file to be written.
        inputs: paths that are read, by what they are called.
        option: the option that names another place, for errors.

    Raises:
        HarpError: the output is one of the inputs.
    """
    for name, path in inputs.items():
        if output.resolve() == Path(path).resolve() or (
            output.exists() and Path(path).exists() and output.samefile(path)
        ):
            raise HarpError(f"{output} is {name}: name another {option}")
