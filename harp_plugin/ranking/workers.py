"""Score batches by the same model on several devices, with one process for each device."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from functools import cache
from multiprocessing import get_context
from typing import Any

import torch

from ..errors import HarpError
from ..models.devices import device_queue
from ..work.processes import UNGUARDED, refuse_while_importing, results_in_order, start_worker
from .batches import Batch, BatchOutputs
from .forward import Forward

__all__ = ["Workers"]

_WAITING_PER_WORKER = 2


class Workers:
    """Processes that score batches; each batch goes to the first process that is free.

    The processes end when `close` is called, when this object is deleted, or when this process
    ends, for whatever reason.

    Args:
        load: makes a `Forward` from the name of a device; it must be picklable.
        devices: the device of each process; several may be ``cpu``.

    Attributes:
        batch_tokens: most tokens of a batch in the first process.
        max_length: the most tokens that the model reads; None if it sets no limit.

    Raises:
        HarpError: the model cannot be loaded, or a process ends.
    """

    def __init__(self, load: Callable[[str], Forward], devices: Sequence[str]) -> None:
        refuse_while_importing()
        context, free = get_context("spawn"), device_queue(devices)
        threads = max(1, torch.get_num_threads() // len(devices))
        self._count = len(devices)
        self._pool = ProcessPoolExecutor(
            len(devices), context, initializer=_start, initargs=(load, free, threads)
        )
        self.close = weakref.finalize(self, self._pool.shutdown, wait=True, cancel_futures=True)
        try:
            with self._clear_errors():
                self.max_length, self.batch_tokens = self._pool.submit(_limits).result()
        except BaseException:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        """Return whether the processes can score more batches."""
        return bool(self.close.alive)

    def run(self, batches: Iterable[Batch]) -> Generator[BatchOutputs, None, None]:
        """Score batches, and return the scores in the order of the batches.

        Args:
            batches: (indices, pairs) of each batch.

        Yields:
            (indices, scores in float32) of each batch.

        Raises:
            HarpError: a process ended, or one pair alone does not fit into its memory.
        """
        most = _WAITING_PER_WORKER * self._count
        with (
            self._clear_errors(),
            closing(
                results_in_order(lambda batch: self._pool.submit(_scores, batch), batches, most)
            ) as scores,
        ):
            yield from scores

    @contextmanager
    def _clear_errors(self) -> Iterator[None]:
        """Close the pool and raise one clear error if a process ends while the block runs."""
        try:
            yield
        except BrokenProcessPool:
            self.close()
            raise HarpError(
                f"a scoring process ended: it was killed, memory ran out, or {UNGUARDED}"
            ) from None


_worker: dict[str, Any] = {}
"""What this worker process has: the function that loads the model, and its device."""


def _start(load: Callable[[str], Forward], free: Any, threads: int) -> None:
    start_worker()
    torch.set_num_threads(threads)
    _worker.update(load=load, device=free.get())


@cache
def _forward() -> Forward:
    return _worker["load"](_worker["device"])


def _limits() -> tuple[int | None, int]:
    return _forward().max_length, _forward().batch_tokens


def _scores(batch: Batch) -> BatchOutputs:
    [scores] = _forward().run([batch])
    return scores
