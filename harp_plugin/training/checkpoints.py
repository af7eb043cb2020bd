"""A model card and a manifest in every checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from transformers import TrainerCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from .folder import RunFolder
from .trainer import HarpTrainer


class DescribedCheckpoints(TrainerCallback):
    """Describes each checkpoint when it is saved, then removes old ones.

    Args:
        folder: of the run.
        trainer: whose checkpoints they are.
    """

    def __init__(self, folder: RunFolder, trainer: HarpTrainer) -> None:
        self.folder = folder
        self.trainer = trainer

    def on_save(self, args, state, control, **_: object) -> None:
        checkpoint = Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}"
        if state.is_world_process_zero and checkpoint.is_dir():
            with self.trainer.speed.stopped():
                self.folder.describe(checkpoint, state_of(self.trainer))
            self.folder.keep_newest(self.trainer.save_total_limit, state.best_model_checkpoint)


def state_of(trainer: HarpTrainer) -> dict[str, Any]:
    """What `RunFolder.manifest` asks of a trainer."""
    return {
        "log": trainer.state.log_history,
        "steps": trainer.state.global_step,
        "fresh_weights": trainer.accelerator.unwrap_model(trainer.model).fresh,
        "untrained_weights": trainer.untrained,
    }
