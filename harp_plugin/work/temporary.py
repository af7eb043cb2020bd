"""Temporary folders that are removed, however the process ends."""

from __future__ import annotations

import multiprocessing
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["folder_of_workers", "temporary_folder"]

_REMOVER = """
import shutil, sys, time
from pathlib import Path
sys.stdin.read()
for _ in range(50):
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    if not Path(sys.argv[1]).exists():
        break
    time.sleep(0.1)
"""


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Give a new folder in the system's temporary folder, and remove it at the end of the block.

    A second process, of a session of its own, removes it where this one is killed.

    Args:
        prefix: how the folder's name begins.
    """
    folder = tempfile.mkdtemp(prefix=prefix)
    remover = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _REMOVER, folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if Path(folder).exists():
            # The remover tries again when no forked process holds its input any more.
            remover.stdin.close()  # type: ignore[union-attr]
        else:
            remover.kill()
            remover.communicate()


@contextmanager
def folder_of_workers() -> Iterator[None]:
    """Let worker processes keep what they share in one temporary folder of this process.

    Otherwise each worker that loads data makes a folder of its own, which stays when it is killed.
    """
    process: Any = multiprocessing.current_process()
    before = process._config.get("tempdir")
    with temporary_folder("harp-") as folder:  # short: the path of a socket has 107 bytes
        process._config["tempdir"] = str(folder)
        try:
            yield
        finally:
            process._config["tempdir"] = before
            _end_children()


def _end_children() -> None:
    """End processes that an interrupted command has left, before their folder goes."""
    children = multiprocessing.active_children()
    if children and threading.current_thread() is threading.main_thread():
        # PyTorch's handler raises an error where a process that loads data ends early.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for child in children:
        child.terminate()
    for child in children:
        child.join(5)
