"""Losses and accuracies on pair groups that are not trained on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.utils.data import DataLoader

from ..errors import HarpError
from .data import GroupDataset

if TYPE_CHECKING:
    from .trainer import HarpTrainer


def losses_on(trainer: HarpTrainer, dataset: GroupDataset | None) -> dict[str, float]:
    """The means that training logs, over all groups, each counted once, and all processes.

    Args:
        trainer: whose model, losses and batch size are taken; its own meters are left alone.
        dataset: the groups, read as in their first epoch.

    Returns:
        The means by name, and their weighted sum, the total ``loss``.

    Raises:
        HarpError: there are fewer groups than processes.
    """
    size, processes = len(dataset or ()), trainer.args.world_size
    if dataset is None or size < processes:
        raise HarpError(f"{size} pair groups cannot be evaluated on {processes} processes")
    batches = shares(size, processes, trainer.args.eval_batch_size)[trainer.args.process_index]
    loader = DataLoader(
        dataset,
        batch_sampler=batches,
        collate_fn=trainer.data_collator,
        num_workers=trainer.args.dataloader_num_workers,
        generator=torch.Generator(),
    )
    model = trainer._wrap_model(trainer.model, training=False).eval()
    of_training, trainer.meters = trainer.meters, trainer.new_meters()
    try:
        with torch.no_grad(), trainer.compute_loss_context_manager():
            for batch in loader:
                trainer.compute_loss(model, trainer._prepare_inputs(batch))
        means = trainer.meters.drain(trainer.accelerator)
    finally:
        trainer.meters = of_training
    terms = trainer.loss.weights.items()
    return means | {"loss": sum(weight * means.get(f"loss/{name}", 0.0) for name, weight in terms)}


def shares(size: int, processes: int, batch: int) -> list[list[list[int]]]:
    """Split numbers below ``size`` into the batches of each process, as many for each, none empty.

    Processes that shard the model wait for each other in every batch.
    """
    steps = min(math.ceil(size / (processes * batch)), size // processes)
    batches = [part.tolist() for part in np.array_split(np.arange(size), processes * steps)]
    return [batches[process::processes] for process in range(processes)]
