"""Tevatron's trainer, for pair groups and a joint model."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers import PreTrainedTokenizerBase, Trainer, TrainerCallback, TrainerControl
from transformers.trainer_callback import PrinterCallback, ProgressCallback

from ..errors import HarpError
from .arguments import HarpTrainingArguments
from .data import Batch, EpochSampler, GroupDataset, PairCollator
from .losses import LossInputs, WeightedSum
from .meters import Meters
from .model import JointModel
from .progress import StepBar
from .tevatron import TevatronTrainer

OF_MODEL = ("input_ids", "attention_mask", "token_type_ids", "masked_positions")


class HarpTrainer(TevatronTrainer):
    """Trains a `JointModel` on pair groups.

    A batch holds whole groups, and each process gets its own. The total loss is the mean over all
    groups (for ``mlm``: over all masked tokens) of the global batch: the same for one process, for
    several, and with gradient accumulation. A head that the checkpoint lacked and that no loss
    trains is not saved.

    Attributes:
        untrained: names of that head's weights.

    Args:
        model: the model.
        args: training options.
        train_dataset: pair groups.
        data_collator: makes batches of them.
        loss: the weighted sum of losses.
        tokenizer: saved with each checkpoint.

    Raises:
        HarpError: there are fewer groups than one global batch takes, or one process would split
            its batches over several GPUs.
    """

    control: TrainerControl

    def __init__(
        self,
        *,
        model: JointModel,
        args: HarpTrainingArguments,
        train_dataset: GroupDataset,
        data_collator: PairCollator,
        loss: WeightedSum,
        tokenizer: PreTrainedTokenizerBase,
    ) -> None:
        _check(args, len(train_dataset))
        self.loss = loss
        self.untrained = model.untrained(scored=loss.needs_scores, masked=loss.needs_mlm)
        self.sampler = EpochSampler(len(train_dataset), args.seed)
        super().__init__(
            model=model,
            args=args,
            train_dataset=train_dataset,
            data_collator=data_collator,
            processing_class=tokenizer,
            callbacks=[_Run(self.sampler)],
        )
        self.remove_callback(ProgressCallback)
        self.remove_callback(PrinterCallback)
        if not args.disable_tqdm:
            self.add_callback(StepBar())
        self.meters = self._meters()
        model.is_split = not self.is_fsdp_enabled

    def _meters(self) -> Meters:
        return Meters(tuple(self.loss.weights), self.data_collator.tasks, self.args.device)

    def get_train_dataloader(self) -> DataLoader:
        """Batches of this process. Tevatron 0.1.0's would give every process the same."""
        return Trainer.get_train_dataloader(self)

    def _get_train_sampler(self, train_dataset: object = None) -> EpochSampler:
        return self.sampler

    def _prepare_inputs(self, inputs: Batch) -> Batch:
        return Trainer._prepare_inputs(self, inputs)

    def get_batch_samples(
        self, epoch_iterator: Iterator[Batch], num_batches: int, device: torch.device
    ) -> tuple[list[Batch], Tensor]:
        """Collect the batches of one optimiser step.

        Returns:
            The batches, and the numbers of groups and of masked tokens in them over all processes,
            divided by the number of processes, fp32, (2,).
        """
        if self.state.global_step >= self.state.max_steps:
            return [], torch.zeros(2, device=device)
        batches, _ = super().get_batch_samples(epoch_iterator, num_batches, device)
        counts = torch.tensor(
            [
                sum(len(batch["group_sizes"]) for batch in batches),
                sum(len(batch.get("mlm_labels", ())) for batch in batches),
            ],
            dtype=torch.float32,
            device=device,
        )
        return batches, self.accelerator.reduce(counts, "mean")

    def compute_loss(
        self,
        model: nn.Module,
        inputs: Batch,
        return_outputs: bool = False,
        num_items_in_batch: Tensor | None = None,
    ) -> Any:
        """Total loss of a batch (eq. 16), its terms added to the meters.

        Args:
            num_items_in_batch: what `get_batch_samples` counted; None takes this batch alone.
        """
        output = model(**{name: inputs[name] for name in OF_MODEL if name in inputs})
        scores, mask = in_groups(output.scores, inputs["group_sizes"])
        terms = self.loss.terms(
            LossInputs(scores, mask, output.get("mlm_logits"), inputs.get("mlm_labels"))
        )
        total = scores.new_zeros(())
        of_groups = scores.new_zeros(len(scores))
        for name, values in terms.items():
            weighted = self.loss.weights[name] * values
            total = total + weighted.sum() / self._count(name, values, num_items_in_batch)
            self.meters.add_loss(name, values)
            if self.loss.is_pair_loss(name):
                of_groups = of_groups + weighted.detach()
        if self.loss.needs_scores:
            self.meters.add_groups(inputs["group_tasks"], of_groups, scores, mask)
        return (total, output) if return_outputs else total

    def _count(self, name: str, values: Tensor, counts: Tensor | None) -> Tensor | float:
        if counts is None:
            return max(len(values), 1)
        return counts[0 if self.loss.is_pair_loss(name) else 1].clamp(min=torch.finfo().tiny)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log each loss and each task's loss and accuracy beside the total.

        Raises:
            HarpError: the loss is not finite.
        """
        if "loss" in logs:
            logs |= self.meters.drain(self.accelerator)
            if not torch.isfinite(torch.tensor(logs["loss"])) and not (
                self.args.logging_nan_inf_filter
            ):
                raise HarpError(
                    f"the loss is {logs['loss']} by step {self.state.global_step}: lower "
                    "learning_rate, or train in fp32 or bf16"
                )
        super().log(logs, start_time)

    def evaluate(
        self,
        eval_dataset: GroupDataset | None = None,
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "eval",
    ) -> dict[str, float]:
        """Losses and accuracies on held-out groups, each counted once; training goes on unmoved.

        Args:
            eval_dataset: the groups, read as in their first epoch.
            ignore_keys: has no effect.
            metric_key_prefix: stands before each name.

        Returns:
            The means that training logs, over all groups and processes, and their total ``loss``.

        Raises:
            HarpError: there are fewer groups than processes.
        """
        size, processes = len(eval_dataset or ()), self.args.world_size
        if eval_dataset is None or size < processes:
            raise HarpError(f"{size} pair groups cannot be evaluated on {processes} processes")
        batches = shares(size, processes, self.args.eval_batch_size)[self.args.process_index]
        loader = DataLoader(
            eval_dataset,
            batch_sampler=batches,
            collate_fn=self.data_collator,
            num_workers=self.args.dataloader_num_workers,
            generator=torch.Generator(),
        )
        model = self._wrap_model(self.model, training=False).eval()
        of_training, self.meters = self.meters, self._meters()
        try:
            with torch.no_grad(), self.compute_loss_context_manager():
                for batch in loader:
                    self.compute_loss(model, self._prepare_inputs(batch))
            means = self.meters.drain(self.accelerator)
        finally:
            self.meters = of_training
        terms = self.loss.weights.items()
        total = sum(weight * means.get(f"loss/{name}", 0.0) for name, weight in terms)
        metrics = {f"{metric_key_prefix}_{name}": mean for name, mean in means.items()}
        metrics[f"{metric_key_prefix}_loss"] = total
        self.log(dict(metrics))
        self.control = self.callback_handler.on_evaluate(
            self.args, self.state, self.control, metrics
        )
        return metrics

    def _save(self, output_dir: str | None = None, state_dict: dict | None = None) -> None:
        if self.args.should_save:
            folder = output_dir or self.args.output_dir
            self.accelerator.unwrap_model(self.model).save(folder, state_dict, self.untrained)
            save_tokenizer(self.processing_class, folder)

    def _load_from_checkpoint(
        self, resume_from_checkpoint: str, model: nn.Module | None = None
    ) -> None:
        if self.is_fsdp_enabled:
            super()._load_from_checkpoint(resume_from_checkpoint, model)
        else:
            unwrapped = self.accelerator.unwrap_model(model or self.model)
            unwrapped.load_weights(resume_from_checkpoint, self.untrained)


class _Run(TrainerCallback):
    """Tells the sampler its epoch, logs the last step, and takes no step after it.

    Accelerate tells samplers their epoch too, but not after a resume on several processes; and a
    run that goes on from its very last step would take one more.
    """

    def __init__(self, sampler: EpochSampler) -> None:
        self.sampler = sampler

    def on_epoch_begin(self, args, state, control, **_: object) -> None:
        self.sampler.set_epoch(int(state.epoch or 0))
        control.should_training_stop |= state.global_step >= state.max_steps

    def on_step_end(self, args, state, control, **_: object) -> None:
        if state.global_step >= state.max_steps:
            control.should_log = True


def shares(size: int, processes: int, batch: int) -> list[list[list[int]]]:
    """Split numbers below ``size`` into the batches of each process, as many for each, none empty.

    Processes that shard the model wait for each other in every batch.
    """
    steps = min(math.ceil(size / (processes * batch)), size // processes)
    batches = [part.tolist() for part in np.array_split(np.arange(size), processes * steps)]
    return [batches[process::processes] for process in range(processes)]


def in_groups(scores: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    """Lay the scores of adjacent members out by group.

    Args:
        scores: (pairs,).
        sizes: members of each group, (groups,).

    Returns:
        Scores and where a group has a member, both (groups, members); elsewhere scores are 0.
    """
    members = torch.arange(int(sizes.max()), device=sizes.device)
    mask = members < sizes[:, None]
    laid_out = scores.new_zeros(mask.shape).masked_scatter(mask, scores)
    return laid_out, mask


def save_tokenizer(tokenizer: PreTrainedTokenizerBase, folder: str) -> None:
    """Save a tokenizer without the truncation and padding of its last call."""
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    tokenizer.save_pretrained(folder)


def _check(args: HarpTrainingArguments, groups: int) -> None:
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
