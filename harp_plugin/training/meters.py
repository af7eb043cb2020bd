"""Compute the means of each loss and each task between two log lines, over all processes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from accelerate import Accelerator
from torch import Tensor

__all__ = ["Meters"]

_LOSS, _CORRECT_PAIRS, _PAIRS, _GROUPS = range(4)
"""Columns of the sums of each task."""


class Meters:
    """Adds up losses and correct pairs on the device, so that only a log line waits for the device.

    It gives ``loss/NAME``, the mean of each loss; ``TASK/loss``, the mean of the weighted pair
    losses of each task; ``TASK/accuracy``, the fraction of a task's negatives that score below
    their positive; and ``accuracy``, the same fraction for all tasks.

    Args:
        losses: names of the losses.
        tasks: names of the tasks.
        device: the device that keeps the sums.
    """

    def __init__(
        self, losses: Sequence[str], tasks: Sequence[str], device: torch.device | str
    ) -> None:
        self.losses = tuple(losses)
        self.tasks = tuple(tasks)
        # Apple's GPUs have no fp64.
        dtype = torch.float32 if torch.device(device).type == "mps" else torch.float64
        self._loss_sums = torch.zeros(len(losses), 2, dtype=dtype, device=device)
        self._task_sums = torch.zeros(len(tasks), 4, dtype=dtype, device=device)

    def add_loss(self, name: str, values: Tensor) -> None:
        """Add the values of a loss, one for each group or each masked token."""
        row = self._loss_sums[self.losses.index(name)]
        row[0] += values.detach().sum()
        row[1] += values.numel()

    def add_groups(self, tasks: Tensor, losses: Tensor, scores: Tensor, mask: Tensor) -> None:
        """Add groups.

        Args:
            tasks: index of the task of each group, (groups,).
            losses: weighted pair loss of each group, (groups,).
            scores: scores, (groups, members); the positive is in column 0.
            mask: True where a group has a member, (groups, members).
        """
        correct = (scores[:, :1] > scores[:, 1:]) & mask[:, 1:]
        rows = torch.stack(
            [losses.detach(), correct.sum(1), mask[:, 1:].sum(1), torch.ones_like(losses)], dim=1
        )
        self._task_sums.index_add_(0, tasks, rows.to(self._task_sums.dtype))

    def drain(self, accelerator: Accelerator) -> dict[str, float]:
        """Return the means over all processes since the last call, and set all sums to 0."""
        losses = accelerator.reduce(self._loss_sums, "sum").tolist()
        tasks = accelerator.reduce(self._task_sums, "sum").tolist()
        self._loss_sums.zero_()
        self._task_sums.zero_()
        means = {
            f"loss/{name}": total / count
            for name, (total, count) in zip(self.losses, losses, strict=True)
            if count
        }
        for name, row in zip(self.tasks, tasks, strict=True):
            if row[_GROUPS]:
                means[f"{name}/loss"] = row[_LOSS] / row[_GROUPS]
                means[f"{name}/accuracy"] = row[_CORRECT_PAIRS] / row[_PAIRS]
        if pairs := sum(row[_PAIRS] for row in tasks):
            means["accuracy"] = sum(row[_CORRECT_PAIRS] for row in tasks) / pairs
        return means
