"""Make batches of held-out pair groups, which the model does not train on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from ..errors import HarpError
from ..models.trainable import Batch
from .data import GroupDataset

__all__ = ["held_out_batches", "split_batches"]


def held_out_batches(
    dataset: GroupDataset | None,
    collate: Callable[..., Batch],
    *,
    process: int,
    processes: int,
    batch_size: int,
    workers: int = 0,
) -> Iterable[Any]:
    """Return the batches of one process; all processes together read each group once.

    Args:
        dataset: the groups; those of the first epoch are read.
        collate: makes a batch from examples.
        process: number of this process.
        processes: number of processes.
        batch_size: most groups of a batch.
        workers: number of processes that prepare batches in advance.

    Raises:
        HarpError: there are fewer groups than processes.
    """
    size = len(dataset or ())
    if dataset is None or size < processes:
        raise HarpError(f"{size} pair groups cannot be evaluated on {processes} processes")
    return DataLoader(
        dataset,
        batch_sampler=split_batches(size, processes, batch_size)[process],
        collate_fn=collate,
        num_workers=workers,
        generator=torch.Generator(),
    )


def split_batches(size: int, processes: int, batch_size: int) -> list[list[list[int]]]:
    """Split the numbers below ``size`` into batches for each process.

    Each process has the same number of batches and no batch is empty, because processes that shard
    a model wait for each other in every batch.
    """
    steps = min(math.ceil(size / (processes * batch_size)), size // processes)
    batches = [part.tolist() for part in np.array_split(np.arange(size), processes * steps)]
    return [batches[process::processes] for process in range(processes)]
