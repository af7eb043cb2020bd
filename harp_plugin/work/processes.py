"""The start of worker processes, and the folder of what they share."""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from multiprocessing import connection, forkserver
from typing import Any, TypeVar

from ..errors import HarpError

__all__ = [
    "UNGUARDED",
    "R",
    "S",
    "folder_of_workers",
    "importing_once",
    "refuse_while_importing",
    "results_in_order",
    "start_worker",
]

UNGUARDED = "the script starts work when it is imported: put that below if __name__ == '__main__'"
"""A reason for which worker processes end at once, as errors give it."""
S = TypeVar("S")
R = TypeVar("R")


def refuse_while_importing() -> None:
    """Refuse to start workers in a worker that still imports the script of its parent process.

    What an executor makes there would leak when the parent ends that worker, and Python's warning
    of the leak would be the last line that the user sees.

    Raises:
        HarpError: the script starts work when it is imported.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise HarpError(UNGUARDED)


def start_worker() -> None:
    """Make this process ignore Ctrl-C, and end it when its parent process ends.

    The parent handles Ctrl-C. A worker that outlived its parent would write files into
    the next run.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def results_in_order(
    submit: Callable[[S], Future[R]], tasks: Iterable[S], most: int
) -> Generator[R, None, None]:
    """Submit tasks, at most this many at once, and give their results in the order of the tasks.

    Where no more results are asked for, tasks that have not begun are cancelled.
    """
    waiting: deque[Future[R]] = deque()
    try:
        for task in tasks:
            waiting.append(submit(task))
            if len(waiting) >= most:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


@contextmanager
def folder_of_workers() -> Iterator[None]:
    """Let worker processes keep what they share in one temporary folder of this process.

    Otherwise each worker that loads data makes a folder of its own, which stays when it is killed.
    """
    process: Any = multiprocessing.current_process()
    before = process._config.get("tempdir")
    with tempfile.TemporaryDirectory(prefix="harp-", ignore_cleanup_errors=True) as folder:
        process._config["tempdir"] = folder  # short: the path of a socket has 107 bytes
        try:
            yield
        finally:
            process._config["tempdir"] = before
            _end_children()


def importing_once(*modules: str) -> Any:
    """Return what starts processes from one server, which has imported these modules once.

    The server serves this process to its end, so its socket lies outside of `folder_of_workers`.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(modules))
    process: Any = multiprocessing.current_process()
    folder = process._config.pop("tempdir", None)
    forkserver.ensure_running()
    if folder is not None:
        process._config["tempdir"] = folder
    return context


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
