"""The device, the number type and the threads that a worker process computes with."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = [
    "default_dtype",
    "device_queue",
    "one_thread",
    "own_device",
    "take_device",
    "to_device",
    "worker_devices",
]

own_device: list[str] = []
"""The device of this worker process; empty in any other process."""


def default_dtype(device: torch.device) -> str:
    """Return bfloat16 for a GPU that has it, else float32, which is the same on every machine."""
    has_bfloat16 = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return "bfloat16" if has_bfloat16 else "float32"


def to_device(values: np.ndarray | Tensor, device: torch.device) -> Tensor:
    """Return the values on a device; a GPU copies them while this thread goes on."""
    tensor = torch.as_tensor(values)
    if device.type == "cuda" and tensor.device.type == "cpu":
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def worker_devices(device: torch.device, workers: int) -> list[str]:
    """Return the device of each worker process: every GPU once, the CPU ``workers`` times."""
    if device.type != "cuda":
        return [str(device)] * workers
    if device.index is not None:
        return [str(device)]
    return [f"cuda:{number}" for number in range(torch.cuda.device_count())]


def device_queue(devices: Iterable[str]) -> Any:
    """Return a queue from which each worker process takes its device by `take_device`."""
    queue = multiprocessing.get_context("spawn").SimpleQueue()
    for name in devices:
        queue.put(name)
    return queue


def take_device(free) -> None:
    """Give this worker process a device of its own, from a `device_queue`."""
    own_device.append(free.get())


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread, as every worker does, and restore their number afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
