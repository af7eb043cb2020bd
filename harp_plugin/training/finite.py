"""End a run when a loss is not finite, with an error that names the example."""

from __future__ import annotations

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from transformers import TrainerCallback

from ..errors import HarpError
from .data import PairGroups

__all__ = ["NonFinite", "StopAtNonFinite"]

_STEP, _EPOCH, _INDEX, _NOT_FINITE, _GROUPS = range(5)
"""Columns of `NonFinite.first`."""
_QUERY_CHARACTERS = 60


class NonFinite:
    """Keeps the first group whose loss was not finite.

    It is kept on the device, so that the training does not wait for it.

    Args:
        device: the device of the losses.
    """

    def __init__(self, device: torch.device | str) -> None:
        self.first = torch.full((5,), -1, dtype=torch.int64, device=device)

    def add(self, step: int, places: Tensor, losses: Tensor) -> None:
        """Check the losses of a batch.

        Args:
            step: number of optimizer steps before the batch.
            places: epoch and index of each group, (groups, 2).
            losses: loss of each group, (groups,).
        """
        wrong = ~losses.detach().isfinite()
        place = places.index_select(0, wrong.int().argmax().reshape(1))[0]
        counts = torch.stack([wrong.sum(), wrong.new_full((), len(wrong), dtype=torch.int64)])
        row = torch.cat([places.new_full((1,), step), place, counts])
        self.first = torch.where(wrong.any() & (self.first[_STEP] < 0), row, self.first)

    def earliest(self, accelerator: Accelerator) -> list[int] | None:
        """Return the first such group of all processes; every process must call this.

        Returns:
            Step, epoch and index of the group, the number of groups in its batch whose loss is not
            finite, and the number of all groups in its batch; None if all losses were finite.
        """
        rows = accelerator.gather(self.first[None]).tolist()
        return min((row for row in rows if row[_STEP] >= 0), default=None)


class StopAtNonFinite(TrainerCallback):
    """Ends a run on all processes before the next log line or checkpoint, if a loss is not finite.

    Args:
        non_finite: keeps the first loss that was not finite.
        groups: the pair groups that the model trains on.
        accelerator: communicates with all processes.
    """

    def __init__(self, non_finite: NonFinite, groups: PairGroups, accelerator: Accelerator) -> None:
        self._non_finite = non_finite
        self._groups = groups
        self._accelerator = accelerator
        self._first_step = 0

    def on_train_begin(self, args, state, control, **_: object) -> None:
        """Note the step at which the training begins."""
        self._first_step = state.global_step

    def on_step_end(self, args, state, control, **context) -> None:
        """Check before the trainer logs, evaluates or saves.

        Raises:
            HarpError: a loss was not finite.
        """
        if control.should_log or control.should_save or control.should_evaluate:
            self._check(context["model"])

    on_epoch_end = on_step_end

    def on_train_end(self, args, state, control, **context) -> None:
        """Check the losses and the weights before the trained model is saved.

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
        epoch, index = first[_EPOCH], first[_INDEX]
        group = self._groups.group(epoch, index)
        label = getattr(self._groups, "label", None)
        name = f", {label(index)}" if label else ""
        query = " ".join(group.positive.query.split())[:_QUERY_CHARACTERS]
        return (
            f"the loss is not finite at step {first[_STEP] + 1}, for {first[_NOT_FINITE]} of "
            f"{first[_GROUPS]} groups of a batch: the first is {group.task}, epoch {epoch}, index "
            f"{index}{name}, {query!r}; {self._advice(first, model)}"
        )

    def _advice(self, first: list[int], model: nn.Module) -> str:
        if first[_NOT_FINITE] < first[_GROUPS]:
            return "the other losses are finite: check the texts and scores of this example"
        if first[_STEP] == self._first_step:
            return "this is the first step of the run: check the weights that it started from"
        return _weights_message(model)


def _broken_weight(model: nn.Module) -> str | None:
    """Return the name of the first weight that is not finite, None if all are finite."""
    named = model.named_parameters()
    return next((name for name, w in named if not w.detach().isfinite().all()), None)


def _weights_message(model: nn.Module) -> str:
    name = _broken_weight(model)
    weight = f" ({name})" if name else ""
    return (
        f"the weights are no longer finite{weight}: lower learning_rate, or train in fp32 or bf16"
    )
