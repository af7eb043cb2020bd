"""Run a model over batches in this process, in parts that fit into memory."""

from __future__ import annotations

import logging
import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import chain, islice
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from ..errors import HarpError
from ..models.loading import longest_input
from ..models.packing import can_pack, prepare
from ..models.pairs import PackedPairs
from ..work.processes import results_in_order
from ..work.thread_lock import thread_lock

__all__ = ["Batch", "BatchOutputs", "BatchRunner", "scoring_lock"]

_TOKENS_ON_CPU = 2048
"""Tokens of a batch in float32; in 16 bits it has twice as many. A larger batch does not fit into a
CPU's caches between two layers, and a smaller one is mostly overhead."""
_SIZE_STEP = 64
_MOST_TOKENS = 131072
"""Most tokens of a batch on a GPU: fewer keep it busy, and more only make the last batch wait."""
_SHARE_OF_MEMORY = 0.6
_BATCHES_AHEAD = 2
"""Batches that wait on a GPU while the results of an earlier one are read."""

logger = logging.getLogger(__name__)

_cpu_lock = thread_lock()
_has_used_threads = False
_model_locks: WeakKeyDictionary[PreTrainedModel, Any] = WeakKeyDictionary()


Batch = tuple[np.ndarray, PackedPairs]
"""The indices of texts or pairs, and these."""
BatchOutputs = tuple[np.ndarray, np.ndarray]
"""The indices of texts or pairs, and what a model computes for them."""


class BatchRunner(ABC):
    """Runs a model over batches on its device.

    Texts are packed if the architecture allows it (see `harp_plugin.models.packing.PACKED`), and
    padded otherwise. Calls from several threads wait for each other: all calls on the CPU, because
    one call uses all of it, and all calls of one model on any device.

    Args:
        model: after each call its mode is as it was before.
        batch_tokens: most tokens of a batch; None takes as many as free memory allows.

    Attributes:
        batch_tokens: most tokens of a batch; it is halved when memory runs out, and stays so.
        max_length: the most tokens that the model reads; None if it sets no limit.
        is_packed: whether texts are packed.
    """

    def __init__(self, model: PreTrainedModel, *, batch_tokens: int | None) -> None:
        self.model = model
        self.max_length = longest_input(model)
        self.is_packed = can_pack(model.config)
        self.batch_tokens = batch_tokens or self._default_batch_tokens()

    @property
    def _step(self) -> int:
        """Large batches are filled up to a multiple of so many tokens; 1 fills none."""
        return _SIZE_STEP if self.model.device.type == "cpu" else 1

    @abstractmethod
    def _outputs(self, batch: PackedPairs) -> Tensor:
        """Compute the output of each text of a batch, in inference mode, on the device."""

    def run(self, batches: Iterable[Batch]) -> Generator[BatchOutputs, None, None]:
        """Compute the outputs of batches.

        The thread that begins to read the outputs must read all of them or close the generator.

        Args:
            batches: (indices, texts or pairs) of each batch.

        Yields:
            (indices, outputs) of each batch.
        """
        source = iter(batches)
        with scoring_lock(self.model.device, self.model), self._evaluation_mode():
            if self.model.device.type == "cuda":
                yield from self._run_ahead(source)
                return
            threads = torch.get_num_threads() if self.model.device.type == "cpu" else 1
            first = list(islice(source, threads))
            if len(first) < threads or threads == 1:
                for indices, batch in chain(first, source):
                    yield indices, self.outputs(batch)
            else:
                yield from self._run_in_threads(chain(first, source), threads)

    def _run_ahead(self, batches: Iterable[Batch]) -> Iterator[BatchOutputs]:
        """Give a GPU its next batches before the results of one are read."""
        waiting: deque[tuple[np.ndarray, Tensor, torch.cuda.Event]] = deque()

        def first() -> BatchOutputs:
            indices, outputs, copied = waiting.popleft()
            copied.synchronize()
            return indices, outputs.numpy()

        stream = torch.cuda.current_stream(self.model.device)
        for indices, batch in batches:
            outputs = self._in_parts(batch).to("cpu", non_blocking=True)
            waiting.append((indices, outputs, stream.record_event()))
            if len(waiting) > _BATCHES_AHEAD:
                yield first()
        while waiting:
            yield first()

    def _run_in_threads(self, batches: Iterable[Batch], threads: int) -> Iterator[BatchOutputs]:
        """Run one batch in each thread, which is faster than all threads for one batch."""
        pool = ThreadPoolExecutor(threads, "score", torch.set_num_threads, (1,))

        def run(batch: Batch) -> BatchOutputs:
            return batch[0], self.outputs(batch[1])

        try:
            yield from results_in_order(lambda batch: pool.submit(run, batch), batches, 2 * threads)
        finally:
            pool.shutdown(cancel_futures=True)
            torch.set_num_threads(threads)

    def outputs(self, batch: PackedPairs) -> np.ndarray:
        """Compute the outputs of a batch, and wait for them.

        Raises:
            HarpError: one text alone does not fit into memory.
        """
        return self._in_parts(batch).cpu().numpy()

    def _in_parts(self, batch: PackedPairs) -> Tensor:
        """Compute the outputs of a batch, in halves if it has more tokens than allowed, or than
        memory takes.

        Raises:
            HarpError: one text alone does not fit into memory.
        """
        if len(batch.ids) > self.batch_tokens and len(batch.lengths) > 1:
            return torch.cat([self._in_parts(half) for half in batch.halves()])
        try:
            return self._outputs(batch)
        except RuntimeError as error:
            is_memory = isinstance(error, torch.OutOfMemoryError)
            if not is_memory and "can't allocate memory" not in str(error):
                raise
        if len(batch.lengths) == 1:
            raise HarpError(
                f"memory of {self.model.device} does not take one text of {len(batch.ids)} tokens:"
                " lower max_length, or choose another dtype or device"
            )
        self.batch_tokens = len(batch.ids) // 2
        logger.warning(
            "%s is out of memory: batches of %d tokens", self.model.device, self.batch_tokens
        )
        if self.model.device.type == "cuda":
            torch.cuda.empty_cache()
        return self._in_parts(batch)

    @contextmanager
    def _evaluation_mode(self) -> Iterator[None]:
        """Set the model to evaluation mode and packed attention; undo both after the block."""
        training = self.model.training
        attention = self.model.config._attn_implementation
        self.model.eval()
        try:
            if self.is_packed:
                prepare(self.model)
            yield
        finally:
            self.model.train(training)
            if self.model.config._attn_implementation != attention:
                self.model.set_attn_implementation(attention)

    def _default_batch_tokens(self) -> int:
        """Return how many tokens of a batch fit into the free memory of the device."""
        device = self.model.device
        if device.type != "cuda":
            return _TOKENS_ON_CPU * torch.float32.itemsize // self.model.dtype.itemsize
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        free = torch.cuda.mem_get_info(device)[0] + unused
        return int(np.clip(_SHARE_OF_MEMORY * free / self._bytes_per_token(), 512, _MOST_TOKENS))

    def _bytes_per_token(self) -> int:
        """Estimate the memory that one token needs in the widest layer."""
        config = self.model.config
        hidden = config.hidden_size
        inner = getattr(config, "intermediate_size", None) or getattr(config, "hidden_dim", 0)
        numbers = 10 * hidden + 3 * (inner or 4 * hidden)
        if not self.is_packed:
            numbers += 3 * config.num_attention_heads * (self.max_length or 512)
        return numbers * self.model.dtype.itemsize


def scoring_lock(
    device: torch.device, model: PreTrainedModel | None = None
) -> AbstractContextManager[Any]:
    """Return the lock that a thread must hold while it scores.

    On a CPU one lock is for all scoring, and also for loading: torch gives a new thread as many
    cores as were set last, and that is one core while several threads score. On another device
    each model has a lock.
    """
    global _has_used_threads
    _has_used_threads = True
    if device.type == "cpu":
        return _cpu_lock
    return nullcontext() if model is None else _model_locks.setdefault(model, thread_lock())


def _use_one_thread() -> None:
    """Compute by one thread in a forked process: those that torch's OpenMP waits for are gone."""
    if _has_used_threads:
        torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_use_one_thread)
