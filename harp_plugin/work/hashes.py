"""Sizes and hashes of files, as records list them, and the check that files still have them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

__all__ = [
    "changed_file",
    "describe_file",
    "describe_files",
    "file_damage",
    "file_hash",
    "listed_size",
]


def file_hash(path: Path) -> str:
    """Compute the SHA-256 of a file's whole content, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def describe_file(path: Path) -> dict[str, Any]:
    """Measure a file: its ``size`` in bytes and its ``sha256``."""
    return {"size": path.stat().st_size, "sha256": file_hash(path)}


def describe_files(folder: Path, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Measure files of a folder.

    Returns:
        What `describe_file` gives for each file, by its name.
    """
    return {name: describe_file(folder / name) for name in sorted(names)}


def listed_size(listed: Mapping[str, Any]) -> int:
    """Read the size of a file in bytes from what a record lists of it."""
    return listed["size"] if "size" in listed else listed["bytes"]  # its name in release 0.1


def file_damage(
    path: Path,
    listed: Mapping[str, Any],
    *,
    whole: bool = True,
    hash_file: Callable[[Path], str] = file_hash,
) -> str | None:
    """Compare a file with what a record lists of it.

    Args:
        path: the file.
        listed: what `describe_file` gave when the file was written.
        whole: compare the whole content, else the size alone.
        hash_file: computes the hash.

    Returns:
        What is wrong with the file, with its path; None if nothing is.

    Raises:
        OSError: the file cannot be read.
    """
    if not path.is_file():
        return f"{path} is missing"
    has_size = listed_size(listed) == path.stat().st_size
    if has_size and (not whole or hash_file(path) == listed["sha256"]):
        return None
    return f"{path} has changed since it was written"


def changed_file(
    folder: Path, listed: Mapping[str, Mapping[str, Any]], *, whole: bool = True
) -> str | None:
    """Look for a file that is missing or not as a record lists it.

    Args:
        folder: where the files lie.
        listed: what `describe_files` gave.
        whole: compare the whole content of each file, else its size alone.

    Returns:
        What is wrong with the first such file; None if there is none.

    Raises:
        OSError: a file cannot be read.
    """
    for name, entry in sorted(listed.items()):
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            return f"{name!r} is listed, which lies outside of {folder}"
        if damage := file_damage(folder / name, entry, whole=whole):
            return damage
    return None
