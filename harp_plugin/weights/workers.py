"""What each worker process weighs with: a model, a device, one thread."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import torch

from .attention import AttentionWeigher
from .encoders import NO_FAST_PATH
from .options import WeightOptions


@lru_cache(maxsize=1)
def _loaded(**options: Any) -> AttentionWeigher:
    return AttentionWeigher(**options)


def load_weigher(options: WeightOptions, device: str | None) -> AttentionWeigher:
    """The model that weighs, loaded once a process."""
    names = ("model", "batch_tokens", "unit", "anchor_row", "dtype")
    return _loaded(device=device, **{name: getattr(options, name) for name in names})


def worker_devices(device: torch.device, workers: int) -> list[str]:
    """The device of each worker process: every GPU once, the CPU ``workers`` times."""
    if device.type != "cuda":
        return [str(device)] * workers
    if device.index is not None:
        return [str(device)]
    return [f"cuda:{number}" for number in range(torch.cuda.device_count())]


own_device: list[str] = []


def take_device(free) -> None:
    """Give this worker process a device of its own, and leave the warning to the first process."""
    own_device.append(free.get())
    warnings.filterwarnings("ignore", f".*{NO_FAST_PATH}", UserWarning)


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread, as every worker does, and leave the process as it was."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
