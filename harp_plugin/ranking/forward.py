"""Batches through a model in this process, as large as memory takes them."""

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

TOKENS_ON_CPU = 2048
"""In float32; of 16 bits twice as many. More no longer fit into a CPU's caches between two layers,
fewer are mostly overhead."""
SIZES_APART = 64
MANY_TOKENS = 512
MOST_TOKENS = 131072
"""A GPU is busy with fewer; more would only make the last batch wait."""
SHARE_OF_MEMORY = 0.6

logger = logging.getLogger(__name__)

_CPU = threading.RLock()
_models: WeakKeyDictionary[PreTrainedModel, threading.RLock] = WeakKeyDictionary()


class Forward:
    """A model on its device, with the budget of a batch.

    Texts are packed where the architecture is known (see `harp_plugin.models.packing.PACKED`), else
    padded. Calls from several threads wait for each other: those on the CPU, which one call keeps
    busy, and those of one model on any device.

    Args:
        model: gives one logit, or two; between calls it is as it was.
        tokenizer: its own.
        batch_tokens: how many tokens a batch may hold; by default, what free memory allows.
        exact_head: apply the head in float32.

    Attributes:
        batch_tokens: the same; halved when memory runs out, and halved it stays.
        longest: tokens that the model has positions for, None where it has no such limit.
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
        self.longest = longest_input(model)
        self._tokenizer = tokenizer
        self._packed: FirstTokenClassifier | None = None
        if can_pack(model.config):
            with one_at_a_time(model.device, model), self._lent():
                self._packed = FirstTokenClassifier(model, exact_head=exact_head)
        self.batch_tokens = batch_tokens or self._found_budget()

    def run(
        self, batches: Iterable[tuple[np.ndarray, PackedPairs]]
    ) -> Generator[tuple[np.ndarray, np.ndarray], None, None]:
        """Score batches: (places, batch) → (places, their scores, float32).

        To be closed by the thread that began it, unless it is read to its end.
        """
        source = iter(batches)
        with one_at_a_time(self.model.device, self.model), self._lent():
            threads = torch.get_num_threads() if self.model.device.type == "cpu" else 1
            first = list(islice(source, threads))
            if len(first) < threads or threads == 1:
                for places, batch in chain(first, source):
                    yield places, self.scores(batch)
            else:
                yield from self._side_by_side(chain(first, source), threads)

    def _side_by_side(
        self, batches: Iterable[tuple[np.ndarray, PackedPairs]], threads: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """A batch for each thread, which is faster than all threads at one batch."""
        waiting: deque[tuple[np.ndarray, Future[np.ndarray]]] = deque()
        pool = ThreadPoolExecutor(threads, "score", torch.set_num_threads, (1,))
        try:
            for places, batch in batches:
                waiting.append((places, pool.submit(self.scores, batch)))
                if len(waiting) > 2 * threads:
                    places, scores = waiting.popleft()
                    yield places, scores.result()
            for places, scores in waiting:
                yield places, scores.result()
        finally:
            pool.shutdown(cancel_futures=True)
            torch.set_num_threads(threads)

    def scores(self, batch: PackedPairs) -> np.ndarray:
        """Score a batch, in parts where it is over the budget or over the memory there is.

        Raises:
            HarpError: memory does not even take one pair.
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
        logits = (self._from_packed(batch) if self._packed else self._from_padded(batch)).float()
        scores = logits[:, 0] if logits.shape[1] == 1 else logits[:, 1] - logits[:, 0]
        return scores.cpu().numpy()

    def _from_packed(self, batch: PackedPairs) -> Tensor:
        assert self._packed
        filled = batch.filled(self._filling(len(batch.ids)))
        types = torch.from_numpy(filled.types) if self._has_types else None
        logits = self._packed(torch.from_numpy(filled.ids), filled.lengths, types).logits
        return logits[: len(batch.lengths)]

    def _filling(self, tokens: int) -> int:
        """Tokens of one more text that bring a large batch to one of few sizes.

        oneDNN keeps code for each size it has met: for thousands of sizes, hundreds of megabytes.
        """
        if self.model.device.type != "cpu" or tokens < MANY_TOKENS:
            return 0
        count = -tokens % SIZES_APART
        return 0 if self.longest is not None and count > self.longest else count

    def _from_padded(self, batch: PackedPairs) -> Tensor:
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
    def _lent(self) -> Iterator[None]:
        """The model in evaluation mode and ready for packed texts; afterwards as it was."""
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

    def _found_budget(self) -> int:
        device = self.model.device
        if device.type != "cuda":
            return TOKENS_ON_CPU * torch.float32.itemsize // self.model.dtype.itemsize
        unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        free = torch.cuda.mem_get_info(device)[0] + unused
        return int(np.clip(SHARE_OF_MEMORY * free / self._bytes_per_token(), 512, MOST_TOKENS))

    def _bytes_per_token(self) -> int:
        """What one token holds at once in the widest layer, by and large."""
        config = self.model.config
        hidden = config.hidden_size
        inner = getattr(config, "intermediate_size", None) or getattr(config, "hidden_dim", 0)
        numbers = 10 * hidden + 3 * (inner or 4 * hidden)
        if self._packed is None:
            numbers += 3 * config.num_attention_heads * (self.longest or 512)
        return numbers * self.model.dtype.itemsize


def one_at_a_time(
    device: torch.device, model: PreTrainedModel | None = None
) -> AbstractContextManager[Any]:
    """The lock of what may be done by one thread at a time.

    On a CPU that is all scoring, and loading as well: torch gives a thread that is new to it as
    many cores as were set last, which is one while batches are scored side by side. On another
    device it is the scoring by one model.
    """
    if device.type == "cpu":
        return _CPU
    return nullcontext() if model is None else _models.setdefault(model, threading.RLock())


def _is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)
