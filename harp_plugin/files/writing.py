"""Files that are written whole or not at all, and records that show when they are damaged."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from ..errors import HarpError

CHECKSUM = "checksum"
"""Key of a record for the SHA-256 of all its other entries."""
TEMPORARY = ".harp-tmp"
"""How the name of each of our temporary files and folders ends."""


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary path to write to, which becomes ``path`` at the end of the block.

    The content is on the disk before the name is: after a power cut the file is whole or absent.
    After an error, nothing is left.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_path(path)
    try:
        yield temporary
        sync(temporary)
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)
        raise
    sync(path.parent)


def temporary_path(path: Path) -> Path:
    """Where this process writes a file or folder before it gets its name."""
    return path.with_name(f"{path.name}.{os.getpid()}{TEMPORARY}")


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="surrogatepass")


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Write a JSON object together with its checksum, whole or not at all."""
    content = json.loads(json.dumps(record))
    content[CHECKSUM] = _checksum(content)
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False)
    write_text(path, text + "\n")


def read_record(path: Path) -> dict[str, Any]:
    """Read what `write_record` wrote, without the checksum.

    Raises:
        HarpError: the file cannot be read, or it is not as it was written.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8", errors="surrogatepass"))
    except (OSError, ValueError, RecursionError) as error:
        raise HarpError(f"{path} is damaged ({type(error).__name__})") from error
    if not isinstance(record, dict) or record.pop(CHECKSUM, None) != _checksum(record):
        raise HarpError(f"{path} is damaged: its checksum is wrong")
    return record


def file_hash(path: Path) -> str:
    """The SHA-256 of a file's whole content, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def describe_files(folder: Path, names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Size and SHA-256 of some files of a folder, as a record lists them."""
    return {
        name: {"size": (folder / name).stat().st_size, "sha256": file_hash(folder / name)}
        for name in sorted(names)
    }


def changed_file(folder: Path, listed: Mapping[str, Any]) -> str | None:
    """The first file that is missing or not as a record lists it, with what is wrong.

    Args:
        folder: where the files lie.
        listed: what `describe_files` gave.

    Raises:
        OSError: a file cannot be read.
    """
    for name, entry in sorted(listed.items()):
        path = folder / name
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            return f"{name!r} is listed, which lies outside of {folder}"
        if not path.is_file():
            return f"{path} is missing"
        if entry["size"] != path.stat().st_size or entry["sha256"] != file_hash(path):
            return f"{path} is not as it was written"
    return None


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's list of names, is on the disk."""
    if os.name == "nt" and path.is_dir():  # Windows opens no folders
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_temporary(folder: Path) -> None:
    """Remove what a killed process left unfinished in a folder; to be called by its only writer."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.name.endswith(TEMPORARY):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _checksum(record: Any) -> str:
    text = json.dumps(record, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
