"""What must hold before a training begins."""

from __future__ import annotations

from ..errors import HarpError
from .arguments import HarpTrainingArguments


def check_batches(args: HarpTrainingArguments, groups: int) -> None:
    """Find that every batch can be made of whole groups, each for one process.

    Args:
        args: training options.
        groups: groups in an epoch.

    Raises:
        HarpError: there are fewer groups than one global batch takes, one process would split its
            batches over several GPUs, or several would share a group.
    """
    if args.n_gpu > 1:
        raise HarpError(
            f"{args.n_gpu} GPUs and one process would split pair groups: start one process for "
            "each GPU with `torchrun --nproc-per-node gpu`, or set CUDA_VISIBLE_DEVICES to one"
        )
    batch = args.train_batch_size * args.world_size
    if groups < batch and args.dataloader_drop_last:
        raise HarpError(
            f"{groups} pair groups are fewer than one batch of {batch}: lower "
            "per_device_train_batch_size, or give more data"
        )
    if args.world_size > 1 and not args.dataloader_drop_last:
        raise HarpError(
            "without dataloader_drop_last several processes would see some pair groups twice: "
            "leave it on"
        )
