"""Batches of pair groups that are not trained on."""

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

__all__ = ["held_out_batches", "shares"]


def held_out_batches(
    dataset: GroupDataset | None,
    collate: Callable[..., Batch],
    *,
    process: int,
    processes: int,
    batch_size: int,
    workers: int = 0,
) -> Iterable[Any]:
    """Return the batches of one process, so that all groups are read once by all processes.

    Args:
        dataset: the groups, read as in their first epoch.
        collate: makes a batch of examples.
        process: number of this process.
        processes: number of processes.
        batch_size: most groups of a batch.
        workers: processes that read ahead.

    Raises:
        HarpError: there are fewer groups than processes.
    """
    size = len(dataset or ())
    if dataset is None or size < processes:
        raise HarpError(f"{size} pair groups cannot be evaluated on {processes} processes")
    return DataLoader(
        dataset,
        batch_sampler=shares(size, processes, batch_size)[process],
        collate_fn=collate,
        num_workers=workers,
        generator=torch.Generator(),
    )


def shares(size: int, processes: int, batch: int) -> list[list[list[int]]]:
    """Split numbers below ``size`` into the batches of each process, as many for each, none empty.

    Processes that shard the model wait for each other in every batch.
    """
    steps = min(math.ceil(size / (processes * batch)), size // processes)
    batches = [part.tolist() for part in np.array_split(np.arange(size), processes * steps)]
    return [batches[process::processes] for process in range(processes)]
