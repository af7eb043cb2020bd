"""Losses that are not finite end a run at its next log line, with the example's name."""

from __future__ import annotations

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from transformers import TrainerCallback

from ..errors import HarpError
from .data import PairGroups

__all__ = ["NonFinite", "StopAtNonFinite"]

STEP, EPOCH, INDEX, BAD, GROUPS = range(5)
_QUERY_CHARACTERS = 60


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
        non_finite: what has been seen.
        groups: the pair groups that are trained on.
        accelerator: reaches all processes.
    """

    def __init__(self, non_finite: NonFinite, groups: PairGroups, accelerator: Accelerator) -> None:
        self._non_finite = non_finite
        self._groups = groups
        self._accelerator = accelerator
        self._first_step = 0

    def on_train_begin(self, args, state, control, **_: object) -> None:
        self._first_step = state.global_step

    def on_step_end(self, args, state, control, **context) -> None:
        """Look before the trainer logs, evaluates or saves.

        Raises:
            HarpError: a loss was not finite.
        """
        if control.should_log or control.should_save or control.should_evaluate:
            self._check(context["model"])

    on_epoch_end = on_step_end

    def on_train_end(self, args, state, control, **context) -> None:
        """Look before the trained model is saved, at the weights of the last step too.

        Raises:
            HarpError: a loss was not finite, or a weight is not.
        """
        model = context["model"]
        self._check(model)
        is_broken = torch.tensor([_broken_weight(model) is not None], device=args.device)
        if self._accelerator.gather(is_broken).any():
            raise HarpError(f"after the last step {_weights_message(model)}")

    def _check(self, model: nn.Module) -> None:
        first = self._non_finite.earliest(self._accelerator)
        if first is not None:
            raise HarpError(self._message(first, model))

    def _message(self, first: list[int], model: nn.Module) -> str:
        epoch, index = first[EPOCH], first[INDEX]
        group = self._groups.group(epoch, index)
        label = getattr(self._groups, "label", None)
        name = f", {label(index)}" if label else ""
        query = " ".join(group.positive.query.split())[:_QUERY_CHARACTERS]
        return (
            f"the loss is not finite at step {first[STEP] + 1}, for {first[BAD]} of "
            f"{first[GROUPS]} groups of a batch: the first is {group.task}, epoch {epoch}, index "
            f"{index}{name}, {query!r}; {self._advice(first, model)}"
        )

    def _advice(self, first: list[int], model: nn.Module) -> str:
        if first[BAD] < first[GROUPS]:
            return "others were well: look at this example's texts and scores"
        if first[STEP] == self._first_step:
            return "the run began so: look at the weights that it started from"
        return _weights_message(model)


def _broken_weight(model: nn.Module) -> str | None:
    """Return the name of a weight that is not finite."""
    named = model.named_parameters()
    return next((name for name, w in named if not w.detach().isfinite().all()), None)


def _weights_message(model: nn.Module) -> str:
    name = _broken_weight(model)
    weight = f" ({name})" if name else ""
    return (
        f"the weights are no longer finite{weight}: lower learning_rate, or train in fp32 or bf16"
    )
