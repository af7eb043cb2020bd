"""Texts → token ids: each text once, and kept only as long as it is needed."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from transformers import PreTrainedTokenizerBase

from ..models.pairs import tokenise

__all__ = ["LazyTokens", "ahead", "tokenizer_key"]

Item = TypeVar("Item")


class LazyTokens:
    """Token ids of texts that are read from front to back, a few places at a time.

    Args:
        texts: n texts.
        uses: how often each is going to be read, (n,); after that its ids are forgotten.
        tokenizer: a fast one.
        max_length: tokens of a text.
    """

    def __init__(
        self,
        texts: Sequence[str],
        uses: np.ndarray,
        tokenizer: PreTrainedTokenizerBase,
        max_length: int,
    ) -> None:
        self._texts = texts
        self._uses = uses.copy()
        self._tokenizer = tokenizer
        self._max_length = max_length
        self._ids: dict[int, np.ndarray] = {}

    def read(self, places: np.ndarray) -> list[np.ndarray]:
        """The ids of the texts at some places, (m,), which may repeat."""
        needed, counts = np.unique(places, return_counts=True)
        missing = [place for place in needed.tolist() if place not in self._ids]
        texts = [self._texts[place] for place in missing]
        ids = tokenise(texts, self._tokenizer, self._max_length)
        self._ids.update(zip(missing, ids, strict=True))
        found = [self._ids[place] for place in places.tolist()]
        self._uses[needed] -= counts
        for place in needed[self._uses[needed] == 0].tolist():
            del self._ids[place]
        return found


def tokenizer_key(tokenizer: PreTrainedTokenizerBase) -> str:
    """Equal for tokenizers that give equal ids."""
    rules = json.loads(tokenizer.backend_tokenizer.to_str())
    rules["padding"] = rules["truncation"] = None
    return hashlib.sha256(json.dumps(rules, sort_keys=True).encode()).hexdigest()


def ahead(items: Iterable[Item], count: int) -> Generator[Item, None, None]:
    """The same items, made in a thread of its own, up to ``count`` of them ahead."""
    end: Any = object()
    source = iter(items)
    thread = ThreadPoolExecutor(1, "ahead")
    try:
        waiting: deque[Future[Item]] = deque()
        waiting.extend(thread.submit(next, source, end) for _ in range(count))
        while (item := waiting.popleft().result()) is not end:
            waiting.append(thread.submit(next, source, end))
            yield item
    finally:
        thread.shutdown(cancel_futures=True)
