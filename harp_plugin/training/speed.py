"""How fast a training runs: tokens and pairs a second, and the share of the device's peak."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from ..models.cross_encoder import JointModel

SPEEDS = ("tokens_per_second", "pairs_per_second", "model_flops_utilisation")
"""What is logged here; it depends on the clock."""
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
"""Dense bf16 peak by a part of the device's name, TFLOP/s, from its maker's data sheet."""


@dataclass(frozen=True)
class Work:
    """What a training step multiplies and adds, by the PaLM paper (Chowdhery et al. 2022, app. B).

    A step costs 6 flops for each weight of a matrix product and each row that it multiplies: two
    forward, four backward; embeddings are looked up and cost nothing. Rows are the tokens for the
    encoder, the pairs for pooler and scoring head, the masked tokens for the language model's head.
    Attention adds 12 · layers · hidden · T for each token of a pair of T tokens. Padding does not
    count, nor does what gradient checkpointing computes again. Local attention is counted as if
    it were global.

    Attributes:
        encoder: weights that multiply every token.
        scoring_head: weights that multiply every pair.
        language_head: weights that multiply every masked token.
        attention: layers · hidden size.
    """

    encoder: int
    scoring_head: int
    language_head: int
    attention: int

    @classmethod
    def of(cls, model: JointModel) -> Work:
        """Count a model's weights, before processes shard it."""
        scorer, config = model.scorer, model.config
        base = getattr(scorer, scorer.base_model_prefix)
        encoder = _weights(base, leave_out="pooler")
        return cls(
            encoder,
            _weights(scorer) - encoder,
            _weights(model.language_model),
            getattr(config, "num_hidden_layers", 0) * getattr(config, "hidden_size", 0),
        )

    def flops(self, tokens: float, squares: float, pairs: float, masked: float) -> float:
        """Flops of a step.

        Args:
            tokens: real tokens.
            squares: sum over pairs of the square of their tokens.
            pairs: number of pairs.
            masked: number of masked tokens.
        """
        rows = self.encoder * tokens + self.scoring_head * pairs + self.language_head * masked
        return 6 * rows + 12 * self.attention * squares


class Speed:
    """Counts on the device, so that nothing waits for it until a line is logged.

    Time in which nothing is trained, such as an evaluation, does not count.

    Args:
        model: what is trained.
        device: on which.
    """

    def __init__(self, model: JointModel, device: torch.device) -> None:
        self.work = Work.of(model)
        self.peak = peak_of(device)
        dtype = torch.float32 if device.type == "mps" else torch.float64
        self.counts = torch.zeros(4, dtype=dtype, device=device)
        self.start()

    def start(self) -> None:
        """Start the clock, with nothing counted."""
        self.counts.zero_()
        self.began = time.perf_counter()

    def add(self, batch: Mapping[str, Tensor]) -> None:
        """Count a batch that is trained on."""
        lengths = batch["attention_mask"].sum(1, dtype=self.counts.dtype)
        self.counts[0] += lengths.sum()
        self.counts[1] += (lengths * lengths).sum()
        self.counts[2] += len(lengths)
        self.counts[3] += len(batch.get("mlm_labels", ()))

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop the clock."""
        before = time.perf_counter()
        try:
            yield
        finally:
            self.began += time.perf_counter() - before

    def drain(self, accelerator: Accelerator) -> dict[str, float]:
        """Give the speed over all processes since the last call, and begin again."""
        counts = accelerator.reduce(self.counts, "sum").tolist()
        seconds = time.perf_counter() - self.began
        self.start()
        tokens, _, pairs, _ = counts
        if not tokens or seconds <= 0:
            return {}
        rates = {"tokens_per_second": tokens / seconds, "pairs_per_second": pairs / seconds}
        if self.peak is not None:
            possible = self.peak * accelerator.num_processes * seconds
            rates["model_flops_utilisation"] = self.work.flops(*counts) / possible
        return rates


def peak_of(device: torch.device) -> float | None:
    """Dense bf16 peak of a GPU in flops a second, None where it is not known."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((peak * 1e12 for part, peak in PEAKS.items() if part in name), None)


def _weights(module: nn.Module, leave_out: str = "\n") -> int:
    """Weights of a module's matrix products."""
    return sum(
        part.weight.numel()
        for name, part in module.named_modules()
        if isinstance(part, nn.Linear) and leave_out not in name
    )
