"""Score batches by a model in this process, in parts that fit into memory."""

from __future__ import annotations

import inspect
import logging
import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import chain, islice
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..errors import HarpError
from ..models.loading import longest_input
from ..models.packing import can_pack, prepare
from ..models.pairs import PackedPairs
from .first_tokens import FirstTokenClassifier

__all__ = ["Forward", "scoring_lock"]

_TOKENS_ON_CPU = 2048
"""Tokens of a batch in float32; in 16 bits it has twice as many. A larger batch does not fit into a
CPU's caches between two layers, and a smaller one is mostly overhead."""
_SIZE_STEP = 64
_LARGE_BATCH_TOKENS = 512
_MOST_TOKENS = 131072
"""Most tokens of a batch on a GPU: fewer keep it busy, and more only make the last batch wait."""
_SHARE_OF_MEMORY = 0.6

logger = logging.getLogger(__name__)

_cpu_lock = threading.RLock()
_model_locks: WeakKeyDictionary[PreTrainedModel, threading.RLock] = WeakKeyDictionary()


class Forward:
    """Runs a model over batches on its device.

    Texts are packed if the architecture allows it (see `harp_plugin.models.packing.PACKED`), and
    padded otherwise. Calls from several threads wait for each other: all calls on the CPU, because
    one call uses all of it, and all calls of one model on any device.

    Args:
        model: a model with one logit or two; after each call its mode is as it was before.
        tokenizer: the tokenizer of the model.
        batch_tokens: most tokens of a batch; None takes as many as free memory allows.
        exact_head: whether the head is applied in float32.

    Attributes:
        batch_tokens: most tokens of a batch; it is halved when memory runs out, and stays so.
        max_length: the most tokens that the model reads; None if it sets no limit.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        batch_tokens: int | None,
        exact_head: bool = False,
    ) -> None:
        self.model = model
        self.max_length = longest_input(model)
        self._tokenizer = tokenizer
        self._packed: FirstTokenClassifier | None = None
        if can_pack(model.config):
            with scoring_lock(model.device, model), self._evaluation_mode():
                self._packed = FirstTokenClassifier(model, exact_head=exact_head)
        self.batch_tokens = batch_tokens or self._default_batch_tokens()

    def run(
        self, batches: Iterable[tuple[np.ndarray, PackedPairs]]
    ) -> Generator[tuple[np.ndarray, np.ndarray], None, None]:
        """Score batches.

        The thread that begins to read the scores must read all of them or close the generator.

        Args:
            batches: (indices, pairs) of each batch.

        Yields:
            (indices, scores in float32) of each batch.
        """
        source = iter(batches)
        with scoring_lock(self.model.device, self.model), self._evaluation_mode():
            threads = torch.get_num_threads() if self.model.device.type == "cpu" else 1
            first = list(islice(source, threads))
            if len(first) < threads or threads == 1:
                for indices, batch in chain(first, source):
                    yield indices, self.scores(batch)
            else:
                yield from self._run_in_threads(chain(first, source), threads)

    def _run_in_threads(
        self, batches: Iterable[tuple[np.ndarray, PackedPairs]], threads: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Score one batch in each thread, which is faster than all threads for one batch."""
        waiting: deque[tuple[np.ndarray, Future[np.ndarray]]] = deque()
        pool = ThreadPoolExecutor(threads, "score", torch.set_num_threads, (1,))
        try:
            for indices, batch in batches:
                waiting.append((indices, pool.submit(self.scores, batch)))
                if len(waiting) > 2 * threads:
                    indices, scores = waiting.popleft()
                    yield indices, scores.result()
            for indices, scores in waiting:
                yield indices, scores.result()
        finally:
            pool.shutdown(cancel_futures=True)
            torch.set_num_threads(threads)

    def scores(self, batch: PackedPairs) -> np.ndarray:
        """Score a batch, in halves if it has more tokens than allowed or than memory takes.

        Raises:
            HarpError: one pair alone does not fit into memory.
        """
        if len(batch.ids) > self.batch_tokens and len(batch.lengths) > 1:
            return np.concatenate([self.scores(half) for half in batch.halves()])
        try:
            return self._scores(batch)
        except (torch.OutOfMemoryError, RuntimeError) as error:
            if not _is_out_of_memory(error):
                raise
        if len(batch.lengths) == 1:
            raise HarpError(
                f"memory of {self.model.device} does not take one pair of {len(batch.ids)} tokens:"
                " lower max_length, or choose another dtype or device"
            )
        self.batch_tokens = len(batch.ids) // 2
        logger.warning(
            "%s is out of memory: batches of %d tokens", self.model.device, self.batch_tokens
        )
        if self.model.device.type == "cuda":
            torch.cuda.empty_cache()
        return self.scores(batch)

    @torch.inference_mode()
    def _scores(self, batch: PackedPairs) -> np.ndarray:
        logits = (
            self._packed_logits(batch) if self._packed else self._padded_logits(batch)
        ).float()
        scores = logits[:, 0] if logits.shape[1] == 1 else logits[:, 1] - logits[:, 0]
        return scores.cpu().numpy()

    def _packed_logits(self, batch: PackedPairs) -> Tensor:
        assert self._packed
        filled = batch.filled(self._filler_tokens(len(batch.ids)))
        types = torch.from_numpy(filled.types) if self._has_types else None
        logits = self._packed(torch.from_numpy(filled.ids), filled.lengths, types).logits
        return logits[: len(batch.lengths)]

    def _filler_tokens(self, tokens: int) -> int:
        """Return the tokens of one more text, so that large batches have few different sizes.

        oneDNN keeps compiled code for each size: hundreds of megabytes for thousands of sizes.
        """
        if self.model.device.type != "cpu" or tokens < _LARGE_BATCH_TOKENS:
            return 0
        count = -tokens % _SIZE_STEP
        return 0 if self.max_length is not None and count > self.max_length else count

    def _padded_logits(self, batch: PackedPairs) -> Tensor:
        tokenizer = self._tokenizer
        inputs = batch.padded(
            tokenizer.pad_token_id or 0,
            tokenizer.pad_token_type_id,
            left=tokenizer.padding_side == "left",
        )
        if not self._has_types:
            del inputs["token_type_ids"]
        device = self.model.device
        return self.model(**{n: torch.from_numpy(v).to(device) for n, v in inputs.items()}).logits

    @property
    def _has_types(self) -> bool:
        accepted = inspect.signature(self.model.forward).parameters
        return all(
            "token_type_ids" in names for names in (self._tokenizer.model_input_names, accepted)
        )

    @contextmanager
    def _evaluation_mode(self) -> Iterator[None]:
        """Set the model to evaluation mode and packed attention; undo both after the block."""
        training = self.model.training
        attention = self.model.config._attn_implementation
        self.model.eval()
        try:
            if self._packed:
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
        if self._packed is None:
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
    if device.type == "cpu":
        return _cpu_lock
    return nullcontext() if model is None else _model_locks.setdefault(model, threading.RLock())


def _is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)
