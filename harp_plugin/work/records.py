"""Records: JSON files with their own checksum, and the sizes and hashes of files in them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import HarpError
from .writing import write_text

__all__ = [
    "CHECKSUM",
    "NOT_WRITTEN_BY_HARP",
    "changed_file",
    "describe_file",
    "describe_files",
    "file_hash",
    "file_state",
    "json_hash",
    "read_own_record",
    "read_record",
    "write_record",
]

CHECKSUM = "checksum"
"""Key of a record for the SHA-256 of all its other entries."""
NOT_WRITTEN_BY_HARP = "was not written by harp, which leaves it as it is"
"""What an error says of a file that another program or a person wrote."""


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Write a JSON object together with its checksum, whole or not at all."""
    content = json.loads(json.dumps(record))
    content[CHECKSUM] = json_hash(content)
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False)
    write_text(path, text + "\n")


def read_record(path: Path) -> dict[str, Any]:
    """Read what `write_record` wrote, without the checksum.

    Raises:
        HarpError: the file cannot be read, or it has changed since it was written.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8", errors="surrogatepass"))
        is_whole = isinstance(record, dict) and record.pop(CHECKSUM, None) == json_hash(record)
    except (OSError, ValueError, RecursionError) as error:
        raise HarpError(f"{path} is damaged ({type(error).__name__})") from error
    if not is_whole:
        raise HarpError(f"{path} is damaged: its checksum is wrong")
    return record


def read_own_record(path: Path, output: str) -> dict[str, Any]:
    """Read a record where another program's file may lie.

    Args:
        path: the record.
        output: the option that names another path, for errors.

    Raises:
        HarpError: the record is damaged, or harp did not write it.
    """
    try:
        return read_record(path)
    except HarpError as error:
        raise HarpError(
            f"{error}, or {NOT_WRITTEN_BY_HARP}: move it away, or name another {output}"
        ) from error


def file_state(path: Path) -> tuple[int, int, int]:
    """Return what changes with the content of a file: its size, its time and its inode."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino


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


def changed_file(
    folder: Path, listed: Mapping[str, Mapping[str, Any]], *, whole: bool = True
) -> str | None:
    """Look for a file that is missing or has changed since a record listed it.

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
        path = folder / name
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            return f"{name!r} is listed, which lies outside of {folder}"
        if not path.is_file():
            return f"{path} is missing"
        has_size = path.stat().st_size == entry["size"]
        if not has_size or (whole and file_hash(path) != entry["sha256"]):
            return f"{path} has changed since it was written"
    return None


def json_hash(value: Any) -> str:
    """Compute the SHA-256 of a value of JSON, in hexadecimal digits, whatever the order of keys."""
    text = json.dumps(value, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
