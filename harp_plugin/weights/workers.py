"""What each worker process has: the model, a device, one thread, and a count of its texts."""

from __future__ import annotations

import multiprocessing
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import torch
from tqdm import tqdm

from .attention import AttentionWeigher
from .encoders import NO_FAST_PATH
from .options import WeightOptions

__all__ = [
    "count_texts",
    "counted_in",
    "device_queue",
    "load_weigher",
    "one_thread",
    "own_device",
    "share_count",
    "take_device",
    "worker_devices",
]

own_device: list[str] = []
"""The device of this worker process; empty in any other process."""
_SECONDS = 0.5
_count: list[Any] = []
"""The count of weighed texts that all workers share; empty where nobody counts."""


@lru_cache(maxsize=1)
def _loaded(**options: Any) -> AttentionWeigher:
    return AttentionWeigher(**options)


def load_weigher(options: WeightOptions, device: str | None) -> AttentionWeigher:
    """Return the model that weighs. It is loaded once in a process."""
    names = ("model", "batch_tokens", "unit", "anchor_row", "dtype")
    return _loaded(device=device, **{name: getattr(options, name) for name in names})


def worker_devices(device: torch.device, workers: int) -> list[str]:
    """Return the device of each worker process: every GPU once, the CPU ``workers`` times."""
    if device.type != "cuda":
        return [str(device)] * workers
    if device.index is not None:
        return [str(device)]
    return [f"cuda:{number}" for number in range(torch.cuda.device_count())]


def device_queue(devices: list[str]) -> Any:
    """Return a queue from which each worker process takes its device by `take_device`."""
    queue = multiprocessing.get_context("spawn").SimpleQueue()
    for name in devices:
        queue.put(name)
    return queue


def take_device(free) -> None:
    """Give this worker process a device of its own, and leave warnings to the main process."""
    own_device.append(free.get())
    warnings.filterwarnings("ignore", f".*{NO_FAST_PATH}", UserWarning)


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread, as every worker does, and restore their number afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def share_count(count: Any) -> None:
    """Let this process count its texts together with the others."""
    _count[:] = [count]


def count_texts(texts: int) -> None:
    """Count texts of this process as weighed."""
    for count in _count:
        with count.get_lock():
            count.value += texts


@contextmanager
def counted_in(bar: tqdm) -> Iterator[Any]:
    """Show in a bar how many texts all workers have weighed; at the end the bar is full.

    Yields:
        The count, for `share_count` in each worker. This process has it already.
    """
    count = multiprocessing.get_context("spawn").Value("q", bar.n)
    ended = threading.Event()

    def follow() -> None:
        while not ended.wait(_SECONDS):
            bar.update(count.value - bar.n)

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    share_count(count)
    try:
        yield count
    finally:
        ended.set()
        thread.join()
        _count.clear()
        bar.update(count.value - bar.n)
    bar.total = bar.n
