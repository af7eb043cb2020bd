"""The start of a worker process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from multiprocessing import connection

__all__ = ["start_worker"]


def start_worker() -> None:
    """Make this process ignore Ctrl-C, and end it when its parent process ends.

    The parent handles Ctrl-C. A worker that outlives its parent would go on to write files beside
    the next run.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
