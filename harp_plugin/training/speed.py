"""Measure how fast a training runs, in tokens and pairs a second and as a share of the peak."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from accelerate import Accelerator

from ..models.training_cost import BatchSize, TrainingCost

__all__ = ["PEAKS", "SPEEDS", "Speed", "peak_of"]

SPEEDS = ("tokens_per_second", "pairs_per_second", "model_flops_utilisation")
"""Names of the values that are logged here; they depend on the clock."""
PEAKS = {
    "B200": 2250,
    "H200": 989,
    "H100 PCIe": 756,
    "H100 NVL": 835,
    "H100": 989,
    "GH200": 989,
    "H800": 989,
    "A100": 312,
    "A800": 312,
    "A40": 150,
    "A30": 165,
    "A10G": 70,
    "A10": 125,
    "L40S": 362,
    "L40": 181,
    "L4": 121,
    "RTX 6000 Ada": 364,
    "RTX A6000": 155,
    "RTX 4090": 165,
    "RTX 3090": 71,
    "MI300X": 1307,
    "MI250X": 383,
}
"""Dense bf16 peak in TFLOP/s by a part of the device's name, from the manufacturer's data sheet."""


class Speed:
    """Counts the tokens and pairs that are trained on, and measures the time.

    Time in which the model does not train, such as an evaluation, does not count.

    Args:
        cost: how much a step computes.
        device: the device that computes it.
    """

    def __init__(self, cost: TrainingCost, device: torch.device) -> None:
        self.cost = cost
        self.peak = peak_of(device)
        self.device = device
        self.start()

    def start(self) -> None:
        """Start the clock, and set all counts to 0."""
        self.size = BatchSize(0, 0, 0, 0)
        self.began = time.perf_counter()

    def add(self, size: BatchSize) -> None:
        """Count a batch that is trained on."""
        self.size = BatchSize(*(sum(counts) for counts in zip(self.size, size, strict=True)))

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the clock while the block runs."""
        before = time.perf_counter()
        try:
            yield
        finally:
            self.began += time.perf_counter() - before

    def drain(self, accelerator: Accelerator) -> dict[str, float]:
        """Return the speed over all processes since the last call, and start anew."""
        dtype = torch.float32 if self.device.type == "mps" else torch.float64
        counts = torch.tensor(self.size, dtype=dtype, device=self.device)
        size = BatchSize(*accelerator.reduce(counts, "sum").tolist())
        seconds = time.perf_counter() - self.began
        self.start()
        if not size.tokens or seconds <= 0:
            return {}
        rates = {
            "tokens_per_second": size.tokens / seconds,
            "pairs_per_second": size.pairs / seconds,
        }
        if self.peak is not None:
            possible = self.peak * accelerator.num_processes * seconds
            rates["model_flops_utilisation"] = self.cost.flops(size) / possible
        return rates


def peak_of(device: torch.device) -> float | None:
    """Return the dense bf16 peak of a GPU in flops a second; None if it is not known."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((peak * 1e12 for part, peak in PEAKS.items() if part in name), None)
