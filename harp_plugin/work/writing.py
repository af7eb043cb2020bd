"""Files and folders that are written whole or not at all."""

from __future__ import annotations

import os
import platform
import re
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from zlib import crc32

from ..errors import HarpError

__all__ = [
    "TEMPORARY",
    "kind_of",
    "refuse_input",
    "refuse_special",
    "refuse_url",
    "remove_temporary",
    "remove_temporary_of",
    "sync",
    "temporary_path",
    "whole",
    "write_text",
]

TEMPORARY = ".harp-tmp"
"""How the name of each temporary file and folder ends."""
_URL = re.compile(r"[a-z][a-z0-9+]+:/")


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Give a temporary path, where a file or a folder is made that becomes ``path`` at the end.

    All content is on the disk before the name is: after a power cut the work is whole or absent.
    After an error, nothing is left. The folder around it is made if there is none.

    Raises:
        OSError: it cannot be written, or there is a folder at ``path`` that is not empty.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_path(path)
    _remove(temporary)
    try:
        yield temporary
        for part in [*temporary.rglob("*"), temporary]:
            sync(part)
        temporary.replace(path)
    except BaseException as error:
        if isinstance(error, OSError) and error.errno and not temporary.is_dir():
            error.filename = error.filename or str(path)
        _remove(temporary)
        raise
    sync(path.parent)


def refuse_url(path: Path) -> None:
    """Refuse to write to a URL, of which a path would make a folder such as ``s3:``.

    Raises:
        HarpError: the path was made of a URL.
    """
    if _URL.match(str(path)):
        raise HarpError(
            f"{path} is a URL: write to a folder, and copy it by the store's own tools, such as "
            "`aws s3 sync`"
        )


def refuse_special(path: Path, output: str, *, is_folder: bool = False) -> None:
    """Refuse to write where something lies that is not a plain file, or not a folder.

    Args:
        path: where a file or a folder is to be written.
        output: the option that names another path, for errors.
        is_folder: a folder is to be written.

    Raises:
        HarpError: there is a link, a device or the like, or a folder in place of a file; or the
            path was made of a URL.
    """
    refuse_url(path)
    is_plain = path.is_dir() if is_folder else path.is_file()
    if path.is_symlink() or (path.exists() and not is_plain):
        raise HarpError(f"{path} is a {kind_of(path)}: name another {output}")


def refuse_input(output: Path, inputs: Mapping[str, str | Path], option: str) -> None:
    """Refuse to write to a file that is read.

    Args:
        output: a file to be written.
        inputs: paths that are read, by what they are called.
        option: the option that names another path, for errors.

    Raises:
        HarpError: the output is one of the inputs.
    """
    for name, path in inputs.items():
        if output.resolve() == Path(path).resolve() or (
            output.exists() and Path(path).exists() and output.samefile(path)
        ):
            raise HarpError(f"{output} is {name}: name another {option}")


def kind_of(path: Path) -> str:
    """Return what lies at a path, in a word."""
    if path.is_symlink():
        return "link"
    return "folder" if path.is_dir() else "file" if path.is_file() else "device or the like"


def temporary_path(path: Path) -> Path:
    """Return the path at which this process writes a file or folder before it gets its name.

    Processes of several hosts may write in one folder, and have the same number; and the threads of
    a process write the same file where one copies what another host has written.
    """
    writer = f"{os.getpid()}{crc32(platform.node().encode())}{threading.get_ident()}"
    return path.with_name(f"{path.name}.{writer}{TEMPORARY}")


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with whole(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="surrogatepass")


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's list of names, is on the disk."""
    if os.name == "nt" and path.is_dir():  # Windows opens no folders
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove_temporary(folder: Path, *, recursive: bool = False) -> None:
    """Remove what killed processes left unfinished in a folder; for the folder's only writer.

    Args:
        folder: need not exist.
        recursive: look into the folders in it as well.
    """
    for path in list(folder.glob(f"{'**/' if recursive else ''}*{TEMPORARY}")):
        _remove(path)


def remove_temporary_of(path: Path) -> None:
    """Remove what killed processes left of a file or folder; for its only writer.

    What they left of the file's record (``.json``), of its unfinished part (``.part``) and of the
    copy of its input (``.input``) is removed as well.
    """
    start, end = re.escape(path.name), re.escape(TEMPORARY)
    name = re.compile(rf"{start}(\.part|\.input)?(\.json)?\.\d+{end}")
    for sibling in path.parent.iterdir() if path.parent.is_dir() else ():
        if name.fullmatch(sibling.name) and not sibling.is_symlink():
            _remove(sibling)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
