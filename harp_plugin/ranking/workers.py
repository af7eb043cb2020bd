"""Batches through the same model on several devices, a process each."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch

from ..errors import HarpError
from ..models.pairs import PackedPairs
from ..processes import start_worker
from .forward import Forward

WAITING_PER_WORKER = 2


class Workers:
    """Processes that score batches; each goes to the first that is free.

    They end with `close`, with this object, or with this process, however it ends.

    Args:
        load: makes a `Forward` of a device's name; pickled.
        devices: one for each process; several may be ``cpu``.

    Attributes:
        batch_tokens: the first worker's budget.
        longest: as `Forward.longest`.

    Raises:
        HarpError: the model cannot be loaded, or a process ends.
    """

    def __init__(self, load: Callable[[str], Forward], devices: Sequence[str]) -> None:
        context = get_context("spawn")
        free = context.SimpleQueue()
        for device in devices:
            free.put(device)
        threads = max(1, torch.get_num_threads() // len(devices))
        self._count = len(devices)
        self._pool = ProcessPoolExecutor(
            len(devices), context, initializer=_start, initargs=(load, free, threads)
        )
        self.close = weakref.finalize(self, self._pool.shutdown, wait=True, cancel_futures=True)
        try:
            with self._told():
                self.longest, self.batch_tokens = self._pool.submit(_limits).result()
        except BaseException:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        """Whether more batches can be scored."""
        return bool(self.close.alive)

    def run(
        self, batches: Iterable[tuple[np.ndarray, PackedPairs]]
    ) -> Generator[tuple[np.ndarray, np.ndarray], None, None]:
        """Score batches: (places, batch) → (places, their scores, float32), in order.

        Raises:
            HarpError: a process ended, or has no memory for a pair.
        """
        waiting: deque[tuple[np.ndarray, Future[np.ndarray]]] = deque()
        try:
            with self._told():
                for places, batch in batches:
                    waiting.append((places, self._pool.submit(_scores, batch)))
                    if len(waiting) > WAITING_PER_WORKER * self._count:
                        places, scores = waiting.popleft()
                        yield places, scores.result()
                while waiting:
                    places, scores = waiting.popleft()
                    yield places, scores.result()
        finally:
            for _, scores in waiting:
                scores.cancel()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except BrokenProcessPool:
            self.close()
            raise HarpError(
                "a scoring process ended: it was killed, memory ran out, or the script starts work"
                " when it is imported (put that under `if __name__ == '__main__':`)"
            ) from None


_own: dict[str, Any] = {}


def _start(load: Callable[[str], Forward], free: Any, threads: int) -> None:
    start_worker()
    torch.set_num_threads(threads)
    _own.update(load=load, device=free.get())


def _forward() -> Forward:
    if "forward" not in _own:
        _own["forward"] = _own["load"](_own["device"])
    return _own["forward"]


def _limits() -> tuple[int | None, int]:
    return _forward().longest, _forward().batch_tokens


def _scores(batch: PackedPairs) -> np.ndarray:
    forward = _forward()
    [(_, scores)] = forward.run([(np.zeros(0), batch)])
    return scores
