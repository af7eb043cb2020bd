"""Callbacks of the trainer: what happens when a training, an epoch or a step begins or ends."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from transformers import EarlyStoppingCallback, ProgressCallback, TrainerCallback

from ..errors import HarpError
from .data import EpochSampler, PairGroups

__all__ = ["EarlyStopping", "ShortLines", "StopAtNonFinite", "TrainingProgress"]

_QUERY_CHARACTERS = 60


class EarlyStopping(EarlyStoppingCallback):
    """transformers' early stopping, which keeps its count when a run is resumed."""

    def on_train_begin(self, args, state, control, **kwargs) -> None:
        """Read the count from the checkpoint that the run resumes from."""
        super().on_train_begin(args, state, control, **kwargs)
        stored = state.stateful_callbacks.get(type(self).__name__, {})
        counter = "early_stopping_patience_counter"
        setattr(self, counter, stored.get("attributes", {}).get(counter, 0))

    @property
    def is_over(self) -> bool:
        """Return whether as many evaluations as allowed brought no better value."""
        return self.early_stopping_patience_counter >= self.early_stopping_patience


class ShortLines(ProgressCallback):
    """transformers' progress bar with lines of 80 columns; the log has what they leave out."""

    def on_log(self, args, state, control, logs=None, **_: object) -> None:
        """Write the step, and what there is of the whole batch or evaluation."""
        if self.training_bar is None or not logs:
            return
        shown = {
            name: value
            for name, value in logs.items()
            if isinstance(value, float) and "/" not in name and not name.startswith("train_")
        }
        for name in ("epoch", "total_flos"):
            shown.pop(name, None)
        values = ", ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in shown.items())
        if values:
            self.training_bar.write(fill(f"step {state.global_step}: {values}", 80))


class TrainingProgress(TrainerCallback):
    """Sets the epoch of the sampler, prevents steps after the last one, and logs at checkpoints.

    Accelerate also sets the epoch of samplers, but not when several processes resume a run. A run
    that resumes from its last step would take one more step. At each checkpoint a line is logged
    and the means begin again, so that a resumed run logs the same lines as a run without a stop.

    Args:
        sampler: the sampler of the groups.
        early_stopping: at the start of an epoch the training ends if it is over.
    """

    def __init__(self, sampler: EpochSampler, early_stopping: EarlyStopping) -> None:
        self._sampler = sampler
        self._early_stopping = early_stopping

    def on_train_begin(self, args, state, control, **_: object) -> None:
        """Find the best checkpoint in the present folder."""
        best = Path(args.output_dir) / f"checkpoint-{state.best_global_step}"
        if best.is_dir():
            state.best_model_checkpoint = str(best)

    def on_epoch_begin(self, args, state, control, **_: object) -> None:
        """Set the epoch of the sampler, and end a training that is over."""
        self._sampler.set_epoch(int(state.epoch or 0))
        is_over = state.global_step >= state.max_steps or self._early_stopping.is_over
        control.should_training_stop |= is_over

    def on_step_end(self, args, state, control, **_: object) -> None:
        """Evaluate and log after the last step."""
        if state.global_step >= state.max_steps:
            control.should_evaluate |= args.eval_strategy == "steps"
            control.should_log = True
        self.on_epoch_end(args, state, control)

    def on_epoch_end(self, args, state, control, **_: object) -> None:
        """Log a line at each checkpoint and each evaluation."""
        control.should_log |= control.should_save or control.should_evaluate


class StopAtNonFinite(TrainerCallback):
    """Ends a run on all processes before the next log line or checkpoint, if a loss is not finite.

    The first such group is kept on the device, so that the training does not wait for it.

    Args:
        device: the device of the losses.
        groups: the pair groups that the model trains on.
        accelerator: communicates with all processes.
    """

    def __init__(
        self, device: torch.device | str, groups: PairGroups, accelerator: Accelerator
    ) -> None:
        # Step, epoch and index of the group; how many losses of its batch are not finite, and all.
        self.first = torch.full((5,), -1, dtype=torch.int64, device=device)
        self._groups = groups
        self._accelerator = accelerator

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
        self.first = torch.where(wrong.any() & (self.first[0] < 0), row, self.first)

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
            raise HarpError(f"after the last step {_broken(model)}")

    def _check(self, model: nn.Module) -> None:
        rows = self._accelerator.gather(self.first[None]).tolist()
        first = min((row for row in rows if row[0] >= 0), default=None)
        if first is None:
            return
        step, epoch, index, wrong, count = first
        group = self._groups.group(epoch, index)
        label = getattr(self._groups, "label", None)
        name = f", {label(index)}" if label else ""
        query = " ".join(group.positive.query.split())[:_QUERY_CHARACTERS]
        others = "the other losses are finite: check the texts and scores of this example"
        raise HarpError(
            f"the loss is not finite at step {step + 1}, for {wrong} of {count} groups of a batch: "
            f"the first is {group.task}, epoch {epoch}, index {index}{name}, {query!r}; "
            f"{others if wrong < count else _broken(model)}"
        )


def _broken_weight(model: nn.Module) -> str | None:
    """Return the name of the first weight that is not finite, None if all are finite."""
    named = model.named_parameters()
    return next((name for name, w in named if not w.detach().isfinite().all()), None)


def _broken(model: nn.Module) -> str:
    name = _broken_weight(model)
    weight = f" ({name})" if name else ""
    return f"the weights are no longer finite{weight}: lower learning_rate, or train in fp32"
