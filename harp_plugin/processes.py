"""What every worker process of ours does when it starts."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from multiprocessing import connection


def start_worker() -> None:
    """Leave Ctrl-C to the parent process, and end with it, however it ends.

    A worker that outlived its parent would write on beside the next run.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
