"""Locks between threads, which a forked process finds open."""

from __future__ import annotations

import os
import threading
from typing import Any
from weakref import WeakSet

__all__ = ["thread_lock"]

_locks: WeakSet[Any] = WeakSet()


def thread_lock() -> Any:
    """Make a lock that one thread can take several times.

    A forked process has only the thread that forked it: a lock that another thread held would stay
    closed there for ever, so that it is opened.
    """
    lock = threading.RLock()
    _locks.add(lock)
    return lock


def _open_all() -> None:
    for lock in _locks:
        lock._at_fork_reinit()  # as the locks of the standard library's logging are opened


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_open_all)
