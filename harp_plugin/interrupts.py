"""Handles Ctrl-C and SIGTERM: the first lets a command clean up, the second ends it at once."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from types import FrameType

__all__ = ["INTERRUPTED", "TERMINATED", "Interruption", "interruptible", "leave"]

INTERRUPTED = 130
"""The exit status of a command that Ctrl-C ended."""
TERMINATED = 143
"""The exit status of a command that SIGTERM ended."""
_STATUSES: dict[int, int] = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}
_WAKE: int = getattr(signal, "SIGUSR1", 0)


class Interruption:
    """Turns SIGINT and SIGTERM into one KeyboardInterrupt in the main thread.

    One thread waits for SIGINT, and all other threads block it. Child processes inherit this, so
    that they never receive the Ctrl-C of a terminal: the main process ends them. A second signal
    ends the process and its children at once.

    Args:
        until_exit: whether to wait for a second signal until the process ends.

    Attributes:
        status: the exit status that the first signal asks for; None before the first signal.
    """

    def __init__(self, *, until_exit: bool = False) -> None:
        self._until_exit = until_exit
        self.status: int | None = None
        self._process = os.getpid()
        self._main = threading.main_thread().ident or 0
        self._ended = False
        self._handlers = {number: signal.getsignal(number) for number in (*_STATUSES, _WAKE)}
        self._waiter: threading.Thread | None = None

    def begin(self) -> None:
        """Start to handle both signals, except for one that this process was started to ignore."""
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._hooks = sys.unraisablehook, threading.excepthook
        for number in self._handlers:
            if number == _WAKE or self._handlers[number] is not signal.SIG_IGN:
                signal.signal(number, self._handle)
        if self._handlers[signal.SIGINT] is not signal.SIG_IGN:
            resource_tracker.ensure_running()  # its start unblocks SIGINT
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            self._waiter = threading.Thread(target=self._wait, daemon=True)
            self._waiter.start()

    def end(self) -> None:
        """Handle the signals as before `begin`, unless the process is about to end."""
        if self.status is not None and self._until_exit:
            return
        if self._waiter is not None and self._waiter.ident is not None:
            self._ended = True
            signal.pthread_kill(self._waiter.ident, signal.SIGINT)
            self._waiter.join()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        sys.unraisablehook, threading.excepthook = self._hooks
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def _wait(self) -> None:
        while True:
            signal.sigwait({signal.SIGINT})
            if self._ended:
                return
            self._note(signal.SIGINT)
            # A real signal also wakes a main thread that waits in a system call.
            signal.pthread_kill(self._main, _WAKE)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:  # a forked child; its parent receives the signal too
            os._exit(TERMINATED)
        if number != _WAKE:
            self._note(number)
        raise KeyboardInterrupt

    def _note(self, number: int) -> None:
        if self.status is not None:
            leave(_STATUSES[number])
        self.status = _STATUSES[number]
        _silence_tracebacks()


def leave(status: int) -> None:
    """End this process and its children at once, without clean-up and without tracebacks."""
    for child in multiprocessing.active_children():
        child.kill()
    os._exit(status)


@contextmanager
def interruptible(*, until_exit: bool = False) -> Iterator[Interruption]:
    """Handle the signals of a command while it runs in the main thread.

    Args:
        until_exit: whether to wait for a second signal until the process ends.
    """
    interruption = Interruption(until_exit=until_exit)
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or not hasattr(signal, "pthread_sigmask"):
        yield interruption
        return
    interruption.begin()
    try:
        yield interruption
    finally:
        interruption.end()


def _silence_tracebacks() -> None:
    """Print no tracebacks of threads and objects that an interruption ends."""
    sys.unraisablehook = lambda _: None
    threading.excepthook = lambda _: None
