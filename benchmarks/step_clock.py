"""Times the steps of a training, counts their tokens, and sees how long the GPU waits."""

from __future__ import annotations

import argparse
import resource
import sys
import time
from typing import Any

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile
from transformers import TrainerCallback


class StepClock(TrainerCallback):
    """Times the steps after the first ones, and profiles some more after these.

    Args:
        options: ``device``; ``batch``, the groups of two pairs in a batch; ``warm`` and ``steps``,
            after which the clock starts and stops; ``profiled``, the steps that follow;
            ``kernels``, how many of their longest operations are printed.

    Attributes:
        result: of the timed steps, for each second, the pairs, their tokens without padding, the
            sum of the squares of their lengths, and the masked tokens; the peak memory in GB; and
            the fraction of the time in which the device computed nothing. That is what is left of a
            second when as many tokens take as long as the kernels of the profiled steps: the
            profiler itself makes steps slower, but not kernels.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.result: dict[str, Any] = {}
        self._steps = self._masked = 0
        self._lengths: list[torch.Tensor] = []
        self._profiler: profile | None = None

    def watch(self, model: torch.nn.Module) -> None:
        """Count the tokens that this model reads."""
        model.register_forward_pre_hook(self._count, with_kwargs=True)

    def _count(self, _: object, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Keep the lengths of a batch; nothing is read back from the device before the end."""
        lengths = named.get("lengths")
        if lengths is None:
            lengths = arguments[0]["attention_mask"].sum(1)
        self._lengths.append(torch.as_tensor(lengths))
        self._masked += len(named.get("masked_positions", ()))

    def on_step_end(self, *_: object, **__: object) -> None:
        """Note the end of a step."""
        self._steps += 1
        options = self.options
        if self._steps == options.warm:
            self._start()
        elif self._steps == options.steps:
            self._stop()
            if options.profiled:
                activity = {"cuda": ProfilerActivity.CUDA, "cpu": ProfilerActivity.CPU}
                self._profiler = profile(activities=[activity[options.device]])
                self._profiler.start()
                self._start()
        elif self._profiler is not None and self._steps == options.steps + options.profiled:
            self._now()
            self._profiler.stop()
            if options.kernels:
                self._print_kernels(self._profiler)
            busy = self._busy(self._profiler) / float(torch.cat(self._lengths).sum())
            self.result["waiting"] = 1 - busy * self.result["tokens"]

    def _start(self) -> None:
        self._lengths.clear()
        self._masked, self._started = 0, self._now()

    def _stop(self) -> None:
        seconds = self._now() - self._started
        lengths = torch.cat(self._lengths).double()
        counts = {
            "rate": 2 * self.options.batch * (self._steps - self.options.warm),
            "tokens": float(lengths.sum()),
            "squares": float(lengths.square().sum()),
            "masked": self._masked,
        }
        self.result = {name: count / seconds for name, count in counts.items()}
        self.result |= {"memory": peak_memory(self.options.device), "waiting": float("nan")}

    def _busy(self, profiler: profile) -> float:
        """Return the seconds in which a kernel ran; on a CPU, an operation."""
        device = {"cuda": DeviceType.CUDA, "cpu": DeviceType.CPU}[self.options.device]
        spans = sorted(
            (event.time_range.start, event.time_range.end)
            for event in profiler.events()
            if event.device_type == device
            and not event.is_user_annotation
            and not event.name.startswith(("Memcpy", "Memset"))
        )
        return covered(spans) / 1e6 if spans else float("nan")

    def _print_kernels(self, profiler: profile) -> None:
        """Print what took most time in the profiled steps."""
        key = "self_cpu_time_total" if self.options.device == "cpu" else "self_device_time_total"
        table = profiler.key_averages().table(key, row_limit=self.options.kernels)
        print(table, file=sys.stderr)

    def _now(self) -> float:
        if self.options.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()


def covered(spans: list[tuple[float, float]]) -> float:
    """Return the length of the union of spans, which ascend by their starts."""
    total, reached = 0.0, float("-inf")
    for start, end in spans:
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def peak_memory(device: str) -> float:
    """Return the peak memory in GB: of the GPU, else what is resident."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated() / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
