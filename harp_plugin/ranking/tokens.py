"""Each distinct text and pair once; token ids are kept only as long as they are needed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat, takewhile
from typing import Any, TypeVar

import numpy as np
from transformers import PreTrainedTokenizerBase

from ..models.tokenizing import tokenize
from ..work.processes import results_in_order

__all__ = ["LazyTokens", "distinct", "distinct_pairs", "prefetch", "tokenizer_key"]

_Item = TypeVar("_Item")


@dataclass
class LazyTokens:
    """Token ids of texts, which are tokenized when they are first read.

    Args:
        texts: n texts.
        uses: how often each text will still be read, (n,), counted down here; then its ids are
            removed from memory.
        tokenizer: a fast tokenizer.
        max_length: most tokens of a text.
    """

    texts: Sequence[str]
    uses: np.ndarray
    tokenizer: PreTrainedTokenizerBase
    max_length: int
    _ids: dict[int, np.ndarray] = field(default_factory=dict)

    def read(self, indices: np.ndarray) -> list[np.ndarray]:
        """Return the token ids of the texts at these indices, (m,), which may repeat."""
        needed, counts = np.unique(indices, return_counts=True)
        missing = [index for index in needed.tolist() if index not in self._ids]
        texts = [self.texts[index] for index in missing]
        missing_ids = tokenize(texts, self.tokenizer, self.max_length)
        self._ids.update(zip(missing, missing_ids, strict=True))
        ids = [self._ids[index] for index in indices.tolist()]
        self.uses[needed] -= counts
        for index in needed[self.uses[needed] == 0].tolist():
            del self._ids[index]
        return ids


def tokenizer_key(tokenizer: PreTrainedTokenizerBase) -> str:
    """Return a key that is equal for tokenizers that make equal token ids."""
    rules = json.loads(tokenizer.backend_tokenizer.to_str())
    rules["padding"] = rules["truncation"] = None
    return hashlib.sha256(json.dumps(rules, sort_keys=True).encode()).hexdigest()


def prefetch(items: Iterable[_Item], count: int) -> Generator[_Item, None, None]:
    """Yield the same items; another thread makes up to ``count`` of them in advance."""
    end: Any = object()
    source = iter(items)
    thread = ThreadPoolExecutor(1, "prefetch")
    try:
        made = results_in_order(lambda _: thread.submit(next, source, end), repeat(None), count)
        yield from takewhile(lambda item: item is not end, made)
    finally:
        thread.shutdown(cancel_futures=True)


def distinct(texts: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """Return for each text its index among the distinct texts, (n,), and the distinct texts.

    The distinct texts are in the order of their first appearance.
    """
    index_of: dict[str, int] = {}
    indices = np.fromiter(
        (index_of.setdefault(text, len(index_of)) for text in texts), np.int64, len(texts)
    )
    return indices, list(index_of)


def distinct_pairs(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct rows of (n, 2) indices, and for each row its index among them, (n,)."""
    if not len(pairs):
        return pairs, np.zeros(0, dtype=np.int64)
    width = int(pairs[:, 1].max()) + 1
    codes, inverse = np.unique(pairs[:, 0] * width + pairs[:, 1], return_inverse=True)
    return np.stack(np.divmod(codes, width), axis=1), inverse
