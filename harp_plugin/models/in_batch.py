"""The documents of a batch as negatives of every query in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from .devices import to_device
from .trainable import GroupKeys

__all__ = ["in_batch_documents", "in_batch_negatives"]


def in_batch_negatives(every: Sequence[GroupKeys], process: int = 0) -> np.ndarray:
    """Find the documents that are negatives of each group, next to its own members.

    A document is none where its text, or the page that it is from, may be relevant to the same
    query in any group of the whole batch. Equal texts count once.

    Args:
        every: the keys of the batches of all processes.
        process: the index of the process among them.

    Returns:
        bool, (the process's groups, documents of all processes).
    """
    own = every[process]
    texts, pages = np.concatenate([keys.documents for keys in every]).T
    relevant: dict[int, set[int]] = {}
    for keys in every:
        for group, key in keys.relevant.tolist():
            relevant.setdefault(int(keys.queries[group]), set()).add(key)
    is_first = np.zeros(len(texts), dtype=bool)
    is_first[np.unique(texts, return_index=True)[1]] = True
    groups = np.split(own.documents[:, 0], np.cumsum(own.sizes)[:-1])
    allowed = np.zeros((len(groups), len(texts)), dtype=bool)
    for group, members in enumerate(groups):
        barred = np.array(sorted(relevant.get(int(own.queries[group]), ())), dtype=np.int64)
        is_relevant = np.isin(texts, barred) | np.isin(pages, barred)
        allowed[group] = is_first & ~is_relevant & ~np.isin(texts, members)
    return allowed


def in_batch_documents(documents: Tensor, keys: GroupKeys) -> tuple[Tensor, Tensor]:
    """Gather the documents of the whole batch, of all processes.

    Args:
        documents: a vector of each pair's document, (pairs, width).
        keys: what is the same among them.

    Returns:
        The vectors, (documents of all processes, width), whose gradients flow back to all
        processes; and which of them are negatives of each group (see `in_batch_negatives`),
        (groups, documents of all processes).
    """
    every, process = [keys], 0
    if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
        process = dist.get_rank()
        every = [keys] * dist.get_world_size()
        dist.all_gather_object(every, keys)
        counts = [len(each.documents) for each in every]
        documents = _Gathered.apply(documents, counts)
    allowed = in_batch_negatives(every, process)
    return documents, to_device(allowed, documents.device)


class _Gathered(torch.autograd.Function):
    """The vectors of all processes, which have so many each, with gradients to each of them."""

    @staticmethod
    def forward(ctx, vectors: Tensor, counts: list[int]) -> Tensor:
        ctx.counts = counts
        parts = [vectors.new_empty(max(counts), vectors.shape[1]) for _ in counts]
        missing = max(counts) - len(vectors)
        dist.all_gather(parts, torch.nn.functional.pad(vectors, (0, 0, 0, missing)).contiguous())
        return torch.cat([part[:count] for part, count in zip(parts, counts, strict=True)])

    @staticmethod
    def backward(ctx, *gradients: Tensor) -> tuple[Tensor, None]:
        total = gradients[0].contiguous()
        dist.all_reduce(total)
        return total.split(ctx.counts)[dist.get_rank()], None
