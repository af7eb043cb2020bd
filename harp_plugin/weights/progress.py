"""A progress bar that worker processes move, text by text."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm

__all__ = ["TextCount", "count_texts", "shown", "take_place"]

_SECONDS = 0.5
_own: list[Any] = []
"""The counts and this process's place in them; empty where nobody counts."""


class TextCount:
    """How many texts each worker has weighed.

    Each worker writes to a place of its own, so that no lock is needed, which a killed one could
    hold.

    Args:
        workers: how many there are; without any, this process takes the only place.
    """

    def __init__(self, workers: int) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.counts = spawn.RawArray("q", max(1, workers))
        self.places = spawn.SimpleQueue()
        for place in range(len(self.counts)):
            self.places.put(place)

    @property
    def total(self) -> int:
        """The sum over all workers."""
        return sum(self.counts)


def take_place(counts: Any, places: Any) -> None:
    """Give this process a place of its own."""
    _own[:] = [counts, places.get()]


def count_texts(texts: int) -> None:
    """Count texts of this process as weighed."""
    if _own:
        counts, place = _own
        counts[place] += texts


@contextmanager
def shown(count: TextCount, bar: tqdm) -> Iterator[None]:
    """Show a count in a bar while a block runs; in its end the bar is full."""
    ended = threading.Event()
    before = bar.n

    def follow() -> None:
        while not ended.wait(_SECONDS):
            bar.update(before + count.total - bar.n)

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        _own.clear()
        bar.update(before + count.total - bar.n)
    bar.total = bar.n
