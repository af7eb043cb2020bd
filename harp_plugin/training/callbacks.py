"""What happens at a run's moments: begin, epoch, step, end."""

from __future__ import annotations

from pathlib import Path

from transformers import EarlyStoppingCallback, TrainerCallback

from .data import EpochSampler
from .speed import Speed

__all__ = ["EarlyStopping", "RunMoments"]


class EarlyStopping(EarlyStoppingCallback):
    """transformers' early stopping, whose count goes on when a run is resumed."""

    def on_train_begin(self, args, state, control, **kwargs) -> None:
        """Take up the count of the checkpoint that the run goes on from."""
        super().on_train_begin(args, state, control, **kwargs)
        stored = state.stateful_callbacks.get(type(self).__name__, {})
        counter = "early_stopping_patience_counter"
        setattr(self, counter, stored.get("attributes", {}).get(counter, 0))

    @property
    def is_over(self) -> bool:
        """Whether patience has run out."""
        return self.early_stopping_patience_counter >= self.early_stopping_patience


class RunMoments(TrainerCallback):
    """Sets the sampler's epoch, takes no step after the last, and logs where a run may resume.

    Accelerate sets the epoch of samplers too, but not after a resume on several processes; and a
    run that goes on from its very last step would take one more. Means of log lines begin anew at
    a checkpoint, so that a resumed run logs what the whole run logs.

    Args:
        sampler: gives the groups of an epoch.
        speed: its clock starts with the training.
        early_stopping: whether its patience has run out is asked at each epoch.
    """

    def __init__(self, sampler: EpochSampler, speed: Speed, early_stopping: EarlyStopping) -> None:
        self._sampler = sampler
        self._speed = speed
        self._early_stopping = early_stopping

    def on_train_begin(self, args, state, control, **_: object) -> None:
        """Find the best checkpoint where the folder lies now, and start the clock."""
        best = Path(args.output_dir) / f"checkpoint-{state.best_global_step}"
        if best.is_dir():
            state.best_model_checkpoint = str(best)
        self._speed.start()

    def on_epoch_begin(self, args, state, control, **_: object) -> None:
        self._sampler.set_epoch(int(state.epoch or 0))
        is_over = state.global_step >= state.max_steps or self._early_stopping.is_over
        control.should_training_stop |= is_over

    def on_step_end(self, args, state, control, **_: object) -> None:
        if state.global_step >= state.max_steps:
            control.should_evaluate |= args.eval_strategy == "steps"
            control.should_log = True
        self.on_epoch_end(args, state, control)

    def on_epoch_end(self, args, state, control, **_: object) -> None:
        control.should_log |= control.should_save or control.should_evaluate
