"""One writer at a time for each folder that a command writes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from ..errors import HarpError
from .writing import remove_temporary

__all__ = ["LOCK", "one_of_several_writers", "one_writer"]

LOCK = ".harp.lock"
"""Name of the lock file in a folder; it stays there when the lock is released."""


@contextmanager
def one_writer(folder: str | Path, file: str | None = None) -> Iterator[None]:
    """Lock a folder, so that no other process writes to it; the folder is made if it is missing.

    The lock is the operating system's: it ends with the process, however that ends.

    Args:
        folder: where to write.
        file: name of the file to lock; other processes may write the folder's other files.

    Raises:
        HarpError: another process is writing there; the message names it.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (LOCK if file is None else f".{file}.lock")
    lock = FileLock(path, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        raise HarpError(
            f"another process is writing to {folder / (file or '')} ({_holder(path)}): wait for "
            f"it to end, or name another {'folder' if file is None else 'file'}"
        ) from None
    holder = _holder_path(path)
    try:
        holder.write_text(_this_process(), errors="replace")
        yield
    finally:
        with suppress(OSError):
            holder.unlink(missing_ok=True)
        lock.release()


@contextmanager
def one_of_several_writers(
    folder: str | Path, at_end: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Lock a folder for processes that share one work in it, and against `one_writer`.

    The last of them to end removes what killed ones left unfinished.

    Args:
        folder: where to write.
        at_end: called by the last of them to end.

    Raises:
        HarpError: another process is writing there that does not share its work, or the operating
            system or the file system has no shared locks.
    """
    try:
        import fcntl
    except ImportError:
        raise HarpError("several hosts share a folder on Linux and macOS only") from None
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / LOCK
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HarpError(
                f"another process is writing to {folder} ({_holder(path)}): wait for it to end"
            ) from None
        except OSError as error:
            raise HarpError(
                f"{folder} is on a file system without locks ({error.strerror}): name a folder on "
                "another, or work without --rank and --world"
            ) from None
        holder = _holder_path(path)
        holder.write_text(f"{_this_process()}, and others", errors="replace")
        yield
        with suppress(OSError):  # where another is still writing
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_temporary(folder, recursive=True)
            at_end()
            holder.unlink(missing_ok=True)


def _this_process() -> str:
    command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])[:200]
    started = time.strftime("%Y-%m-%d %H:%M:%S")
    return f"process {os.getpid()}, started {started}: {command}"


def _holder_path(lock: Path) -> Path:
    """Name the file in which the holder of a lock writes who it is; filelock owns the lock file."""
    return lock.with_name(f"{lock.name}.by")


def _holder(lock: Path) -> str:
    try:
        return _holder_path(lock).read_text(errors="replace") or "it has not written its name yet"
    except OSError:
        return "it has not written its name yet"
