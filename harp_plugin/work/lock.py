"""One writer at a time for each folder that a command writes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from ..errors import HarpError
from .writing import refuse_url

__all__ = ["LOCK", "one_writer"]

LOCK = ".harp.lock"
"""Name of the lock file in a folder; it stays there when the lock is released."""
_UNNAMED = "ranks, or a process that has just begun"


@contextmanager
def one_writer(
    folder: str | Path, file: str | None = None, *, with_ranks: bool = False
) -> Iterator[None]:
    """Lock a folder, so that no other process writes to it; the folder is made if it is missing.

    The lock is the operating system's: it ends with the process, however that ends.

    Args:
        folder: where to write.
        file: name of the file to lock; other processes may write the folder's other files.
        with_ranks: other ranks of the same work may write to the folder.

    Raises:
        HarpError: another process is writing there; the message names it.
    """
    folder = Path(folder)
    refuse_url(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (LOCK if file is None else f".{file}.lock")
    if with_ranks:
        with _shared_lock(path):
            yield
        return
    lock = FileLock(path, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        raise _refusal(path, file) from None
    holder = _holder_path(path)
    try:
        holder.write_text(_this_process(), errors="replace")
        yield
    finally:
        with suppress(OSError):
            holder.unlink(missing_ok=True)
        lock.release()


@contextmanager
def _shared_lock(path: Path) -> Iterator[None]:
    """Lock a file for all ranks of one work; `one_writer` without ranks waits for none of them."""
    try:
        import fcntl
    except ImportError:
        raise HarpError("--rank and --world work on Linux and macOS only") from None
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _refusal(path) from None
        except OSError as error:
            raise HarpError(
                f"{path.parent} is on a file system without locks ({error.strerror}): name a "
                "folder on another, or work without --rank and --world"
            ) from None
        yield


def _refusal(lock: Path, file: str | None = None) -> HarpError:
    return HarpError(
        f"another process is writing to {lock.parent / (file or '')} ({_holder(lock)}): wait for "
        f"it to end, or name another {'folder' if file is None else 'file'}"
    )


def _this_process() -> str:
    command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])[:200]
    started = time.strftime("%Y-%m-%d %H:%M:%S")
    return f"process {os.getpid()}, started {started}: {command}"


def _holder_path(lock: Path) -> Path:
    """Name the file in which the holder of a lock writes who it is; filelock owns the lock file."""
    return lock.with_name(f"{lock.name}.by")


def _holder(lock: Path) -> str:
    try:
        return _holder_path(lock).read_text(errors="replace") or _UNNAMED
    except OSError:
        return _UNNAMED
