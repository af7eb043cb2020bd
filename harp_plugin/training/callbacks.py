"""Callbacks of the trainer: what happens when a training, an epoch or a step begins or ends."""

from __future__ import annotations

from pathlib import Path

from transformers import EarlyStoppingCallback, TrainerCallback

from .data import EpochSampler

__all__ = ["EarlyStopping", "TrainingProgress"]


class EarlyStopping(EarlyStoppingCallback):
    """transformers' early stopping, which keeps its count when a run is resumed."""

    def on_train_begin(self, args, state, control, **kwargs) -> None:
        """Read the count from the checkpoint that the run continues from."""
        super().on_train_begin(args, state, control, **kwargs)
        stored = state.stateful_callbacks.get(type(self).__name__, {})
        counter = "early_stopping_patience_counter"
        setattr(self, counter, stored.get("attributes", {}).get(counter, 0))

    @property
    def is_over(self) -> bool:
        """Whether as many evaluations as allowed brought no better value."""
        return self.early_stopping_patience_counter >= self.early_stopping_patience


class TrainingProgress(TrainerCallback):
    """Sets the epoch of the sampler, prevents steps after the last one, and logs at checkpoints.

    Accelerate also sets the epoch of samplers, but not when several processes resume a run. A run
    that continues from its last step would take one more step. At each checkpoint a line is logged
    and the means start anew, so that a resumed run logs the same lines as a run without a stop.

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
