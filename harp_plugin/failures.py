"""Messages for errors that the user can solve: errors of the system and of the input."""

from __future__ import annotations

import errno
import json
import lzma
import os
import zlib

from .errors import HarpError

__all__ = ["user_message"]

_ADVICE = {
    errno.ENOSPC: "no space left on the device: free some and run again",
    errno.EDQUOT: "the disk quota is used up: free some space and run again",
    errno.EFBIG: "the file is larger than this system allows: name a folder on another disk",
    errno.EACCES: "permission denied: change the permissions, or name another path",
    errno.EPERM: "operation not permitted: change the permissions, or name another path",
    errno.EROFS: "the file system is read-only: name another path",
    errno.ENOENT: "no such file or folder: check the path, and where its symbolic links lead",
    errno.EEXIST: "a file or a broken symbolic link is in the way: name another path, or remove it",
    errno.ENOTDIR: "a part of the path is a file, not a folder: name another path",
    errno.EISDIR: "it is a folder where a file is expected: name another path",
    errno.ENOTEMPTY: "the folder is not empty: name another path, or empty it",
    errno.ELOOP: "symbolic links lead in a circle: correct them, or name another path",
    errno.ENAMETOOLONG: "the name is too long: give a shorter one",
    errno.EMFILE: "too many open files: raise the limit (ulimit -n), or give fewer --workers",
    errno.ENFILE: "too many open files on this machine: close some programs and run again",
    errno.EAGAIN: "no process or thread can be started: give fewer --workers",
    errno.ENOMEM: "there is too little memory: give fewer --workers, or smaller batches",
    errno.EIO: "the disk fails: check it, and run again",
    errno.EBUSY: "it is in use: end the program that uses it, and run again",
    errno.EXDEV: "it lies on two disks: name a path on one disk",
}
_DAMAGED: tuple[type[Exception], ...] = (zlib.error, lzma.LZMAError, EOFError)
_BUGS = (TypeError, LookupError, AttributeError, AssertionError, NotImplementedError)


def user_message(error: BaseException) -> str | None:
    """Return the message for an error that the user can solve.

    These are errors of the operating system and of damaged input, wherever they are raised, even in
    a worker process.

    Returns:
        The message; None for an error that only a mistake in the program causes.
    """
    if isinstance(error, HarpError):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        return _missing_package(error)
    if isinstance(error, MemoryError):
        return _ADVICE[errno.ENOMEM]
    if _is_instance(error, "torch", "OutOfMemoryError"):
        return "the GPU has too little memory: lower the batch size or the length of inputs"
    if isinstance(error, OSError):
        return _system_message(error)
    if isinstance(error, UnicodeError):
        return f"a text is not valid Unicode ({error}): correct the input"
    if isinstance(error, _BUGS):
        return None
    if isinstance(error, RuntimeError) and str(error).startswith(
        "Symlink loop"
    ):  # raised by pathlib
        return f"{error}: {_ADVICE[errno.ELOOP]}"
    if isinstance(error, json.JSONDecodeError) or _is_nested_json(error):
        return f"a JSON file is damaged ({error}): correct it, or make it again"
    if isinstance(error, _DAMAGED) or _is_instance(error, "pyarrow", "ArrowException"):
        return f"a file is damaged ({_kind(error)}: {error}): fetch it or make it again"
    return None


def _missing_package(error: ModuleNotFoundError) -> str | None:
    if (error.name or "harp_plugin").startswith("harp_plugin"):
        return None
    return f"{error.name} is not installed: run `pip install 'harp-plugin[all]'`"


def _system_message(error: OSError) -> str:
    names = [os.fsdecode(name) for name in (error.filename, error.filename2) if _is_path(name)]
    place = f"{' -> '.join(names)}: " if names else ""
    if error.errno in _ADVICE:
        return place + _ADVICE[error.errno]
    reason = error.strerror or str(error) or _kind(error)
    return f"{place}{reason} ({_kind(error)}): check the file, the disk or the connection"


def _is_path(name: object) -> bool:
    return isinstance(name, str | bytes | os.PathLike)


def _is_nested_json(error: BaseException) -> bool:
    return isinstance(error, RecursionError) and "JSON" in str(error)


def _is_instance(error: BaseException, package: str, name: str) -> bool:
    """Tell whether an error is of a class of a package, without importing the package."""
    classes = type(error).__mro__
    return any(c.__name__ == name and c.__module__.partition(".")[0] == package for c in classes)


def _kind(error: BaseException) -> str:
    return type(error).__name__
