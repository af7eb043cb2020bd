"""Ctrl-C and SIGTERM: the first lets a command clean up, the second ends it at once."""

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

INTERRUPTED = 130
TERMINATED = 143
_STATUSES: dict[int, int] = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}
_WAKE: int = getattr(signal, "SIGUSR1", 0)


class Interruption:
    """Turns SIGINT and SIGTERM into one KeyboardInterrupt in the main thread.

    A thread waits for SIGINT, which all others block. A child process inherits that, so that it
    never sees a Ctrl-C of the terminal: the main process ends it. A second signal ends the process
    at once, together with its children.

    Args:
        until_exit: after an interruption, go on waiting for a second signal until the process ends.

    Attributes:
        status: the exit status that the first signal asks for; None before any.
    """

    def __init__(self, *, until_exit: bool = False) -> None:
        self._until_exit = until_exit
        self.status: int | None = None
        self._process = os.getpid()
        self._main = threading.main_thread().ident or 0
        self._over = False
        self._handlers = {number: signal.getsignal(number) for number in (*_STATUSES, _WAKE)}
        self._waiting: threading.Thread | None = None

    def begin(self) -> None:
        """Take both signals, but for one that this process was started to ignore."""
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._hooks = sys.unraisablehook, threading.excepthook
        for number in self._handlers:
            if number == _WAKE or self._handlers[number] is not signal.SIG_IGN:
                signal.signal(number, self._told)
        if self._handlers[signal.SIGINT] is not signal.SIG_IGN:
            resource_tracker.ensure_running()  # when it starts, it unblocks SIGINT
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            self._waiting = threading.Thread(target=self._wait, daemon=True)
            self._waiting.start()

    def end(self) -> None:
        """Leave the signals as they were, unless the process is about to end."""
        if self.status is not None and self._until_exit:
            return
        if self._waiting is not None and self._waiting.ident is not None:
            self._over = True
            signal.pthread_kill(self._waiting.ident, signal.SIGINT)
            self._waiting.join()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        sys.unraisablehook, threading.excepthook = self._hooks
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def _wait(self) -> None:
        while True:
            signal.sigwait({signal.SIGINT})
            if self._over:
                return
            self._take(signal.SIGINT)
            # A real signal, for it also wakes a main thread that waits in a system call.
            signal.pthread_kill(self._main, _WAKE)

    def _told(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:  # a forked child: its parent has been told as well
            os._exit(TERMINATED)
        if number != _WAKE:
            self._take(number)
        raise KeyboardInterrupt

    def _take(self, number: int) -> None:
        if self.status is not None:
            leave(_STATUSES[number])
        self.status = _STATUSES[number]
        _hush()


def leave(status: int) -> None:
    """End this process and its children at once, without clean-up or tracebacks."""
    for child in multiprocessing.active_children():
        child.kill()
    os._exit(status)


@contextmanager
def interruptible(*, until_exit: bool = False) -> Iterator[Interruption]:
    """Handle the signals of a command while it runs in the main thread.

    Args:
        until_exit: as in `Interruption`.
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


def _hush() -> None:
    """Let what is torn down by an interruption end without tracebacks."""
    sys.unraisablehook = lambda _: None
    threading.excepthook = lambda _: None
