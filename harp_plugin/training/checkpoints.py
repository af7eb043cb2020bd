"""Write a model card and a manifest into every checkpoint, and remove old checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerState
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from .checkpoint_files import keep_newest
from .folder import RunFolder

__all__ = ["DescribedCheckpoints"]


class DescribedCheckpoints(TrainerCallback):
    """Describes each checkpoint when it is saved, and then removes old checkpoints.

    Args:
        folder: the folder of the run.
        state_of: turns the trainer's state into what `checkpoint_manifest` takes by name.
        limit: how many checkpoints are kept; None, 0 or less keeps all.
    """

    def __init__(
        self,
        folder: RunFolder,
        state_of: Callable[[TrainerState], dict[str, Any]],
        limit: int | None,
    ) -> None:
        self._folder = folder
        self._state_of = state_of
        self._limit = limit

    def on_save(self, args, state, control, **_: object) -> None:
        """Describe the checkpoint that was saved."""
        checkpoint = Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"
        if state.is_world_process_zero and checkpoint.is_dir():
            self._folder.describe(checkpoint, self._state_of(state))
            self.remove_old(state)

    def remove_old(self, state: TrainerState) -> None:
        """Remove old checkpoints, but neither the last nor the best."""
        keep_newest(self._folder.path, self._limit, state.best_model_checkpoint)
