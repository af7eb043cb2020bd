"""Running means of each loss and of each task, over all processes, between two log lines."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from accelerate import Accelerator
from torch import Tensor

LOSS, PAIRS_RIGHT, PAIRS, GROUPS = range(4)


class Meters:
    """Sums on the device, so that nothing waits for it until a line is logged.

    Logged are ``loss/NAME`` for each loss; for each task ``TASK/loss``, its weighted pair losses,
    and ``TASK/accuracy``, the share of its negatives that score below their positive; and
    ``accuracy`` over all tasks.

    Args:
        losses: names of the losses.
        tasks: names of the tasks.
        device: where the sums are kept.
    """

    def __init__(
        self, losses: Sequence[str], tasks: Sequence[str], device: torch.device | str
    ) -> None:
        self.losses = tuple(losses)
        self.tasks = tuple(tasks)
        # Apple's GPUs have no fp64.
        dtype = torch.float32 if torch.device(device).type == "mps" else torch.float64
        self.of_losses = torch.zeros(len(losses), 2, dtype=dtype, device=device)
        self.of_tasks = torch.zeros(len(tasks), 4, dtype=dtype, device=device)

    def add_loss(self, name: str, values: Tensor) -> None:
        """Count a loss's values, one for each group or masked token."""
        row = self.of_losses[self.losses.index(name)]
        row[0] += values.detach().sum()
        row[1] += values.numel()

    def add_groups(self, tasks: Tensor, losses: Tensor, scores: Tensor, mask: Tensor) -> None:
        """Count groups: task indices and losses, (groups,); scores and mask, (groups, members)."""
        right = (scores[:, :1] > scores[:, 1:]) & mask[:, 1:]
        rows = torch.stack(
            [losses.detach(), right.sum(1), mask[:, 1:].sum(1), torch.ones_like(losses)], dim=1
        )
        self.of_tasks.index_add_(0, tasks, rows.to(self.of_tasks.dtype))

    def drain(self, accelerator: Accelerator) -> dict[str, float]:
        """Give the means since the last call, over all processes, and begin again."""
        losses = accelerator.reduce(self.of_losses, "sum").tolist()
        tasks = accelerator.reduce(self.of_tasks, "sum").tolist()
        self.of_losses.zero_()
        self.of_tasks.zero_()
        means = {
            f"loss/{name}": total / count
            for name, (total, count) in zip(self.losses, losses, strict=True)
            if count
        }
        for name, row in zip(self.tasks, tasks, strict=True):
            if row[GROUPS]:
                means[f"{name}/loss"] = row[LOSS] / row[GROUPS]
                means[f"{name}/accuracy"] = row[PAIRS_RIGHT] / row[PAIRS]
        if pairs := sum(row[PAIRS] for row in tasks):
            means["accuracy"] = sum(row[PAIRS_RIGHT] for row in tasks) / pairs
        return means
