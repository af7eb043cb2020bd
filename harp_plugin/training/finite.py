"""Losses that are not finite: noted on the device, told with the example at the next log line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from accelerate import Accelerator
from torch import Tensor
from transformers import TrainerCallback

from ..errors import HarpError

if TYPE_CHECKING:
    from .trainer import HarpTrainer

STEP, EPOCH, INDEX, BAD, GROUPS = range(5)
_QUERY = 60


class NonFinite:
    """The first group whose loss was not finite, kept on the device so that nothing waits for it.

    Args:
        device: where the losses are.
    """

    def __init__(self, device: torch.device | str) -> None:
        self.first = torch.full((5,), -1, dtype=torch.int64, device=device)

    def add(self, step: int, places: Tensor, losses: Tensor) -> None:
        """Look at a batch.

        Args:
            step: optimiser steps taken before it.
            places: epoch and index of each group, (groups, 2).
            losses: of each group, (groups,).
        """
        bad = ~losses.detach().isfinite()
        place = places.index_select(0, bad.int().argmax().reshape(1))[0]
        batch = torch.stack([bad.sum(), bad.new_full((), len(bad), dtype=torch.int64)])
        found = torch.cat([places.new_full((1,), step), place, batch])
        self.first = torch.where(bad.any() & (self.first[STEP] < 0), found, self.first)

    def earliest(self, accelerator: Accelerator) -> list[int] | None:
        """The earliest over all processes: step, epoch, index, bad groups and groups of its batch.

        Every process must call it. None where all losses were finite.
        """
        found = accelerator.gather(self.first[None]).tolist()
        return min((row for row in found if row[STEP] >= 0), default=None)


class StopAtNonFinite(TrainerCallback):
    """Ends a run on all processes, before the next log line or checkpoint.

    Args:
        trainer: the trainer.
    """

    def __init__(self, trainer: HarpTrainer) -> None:
        self.trainer = trainer
        self.started = 0

    def on_train_begin(self, args, state, control, **_: object) -> None:
        self.started = state.global_step

    def on_step_end(self, args, state, control, **_: object) -> None:
        """Look before the trainer logs, evaluates or saves.

        Raises:
            HarpError: a loss was not finite.
        """
        if control.should_log or control.should_save or control.should_evaluate:
            self._check()

    on_epoch_end = on_step_end

    def on_train_end(self, args, state, control, **_: object) -> None:
        """Look before the trained model is saved, at the weights of the last step too.

        Raises:
            HarpError: a loss was not finite, or a weight is not.
        """
        self._check()
        accelerator = self.trainer.accelerator
        flag = torch.tensor([self._broken() is not None], device=accelerator.device)
        if accelerator.gather(flag).any():
            raise HarpError(f"after the last step {self._told_weights()}")

    def _check(self) -> None:
        found = self.trainer.non_finite.earliest(self.trainer.accelerator)
        if found is not None:
            raise HarpError(self._told(found))

    def _told(self, found: list[int]) -> str:
        groups = self.trainer.train_dataset.groups
        epoch, index = found[EPOCH], found[INDEX]
        group = groups.group(epoch, index)
        label = f", {groups.label(index)}" if hasattr(groups, "label") else ""
        query = " ".join(group.positive.query.split())[:_QUERY]
        return (
            f"the loss is not finite at step {found[STEP] + 1}, for {found[BAD]} of "
            f"{found[GROUPS]} groups of a batch: the first is {group.task}, epoch {epoch}, index "
            f"{index}{label}, {query!r}; {self._advice(found)}"
        )

    def _advice(self, found: list[int]) -> str:
        if found[BAD] < found[GROUPS]:
            return "others were well: look at this example's texts and scores"
        if found[STEP] == self.started:
            return "the run began so: look at the weights that it started from"
        return self._told_weights()

    def _broken(self) -> str | None:
        """The name of a weight that is not finite."""
        named = self.trainer.model.named_parameters()
        return next((name for name, w in named if not w.detach().isfinite().all()), None)

    def _told_weights(self) -> str:
        name = self._broken()
        weight = f" ({name})" if name else ""
        return (
            f"the weights are no longer finite{weight}: lower learning_rate, or train in fp32 or "
            "bf16"
        )
