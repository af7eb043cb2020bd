"""Check what must be true before a training begins."""

from __future__ import annotations

from ..errors import HarpError
from .arguments import HarpTrainingArguments

__all__ = ["check_batches"]


def check_batches(args: HarpTrainingArguments, groups: int) -> None:
    """Check that each batch can have whole groups, and that each group belongs to one process.

    Args:
        args: training options.
        groups: number of groups in an epoch.

    Raises:
        HarpError: there are fewer groups than one global batch needs, one process would split its
            batches over several GPUs, or several processes would have the same group.
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
