"""Adapt Tevatron's trainer to pair groups and to models with several losses."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from copy import copy
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import DynamoBackend
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from transformers import PreTrainedTokenizerBase, Trainer, TrainerControl
from transformers.integrations import is_deepspeed_zero3_enabled
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_callback import PrinterCallback, ProgressCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from ..errors import HarpError, folded
from ..models.cpu_modules import keep_gradient, use_cpu_modules
from ..models.devices import one_thread, to_device
from ..models.packing.encoder import compiled_layers, undo_compiling
from ..models.pairs import joins_pairs
from ..models.trainable import Batch, TrainableModel
from ..work.writing import write_text
from .arguments import HarpTrainingArguments
from .callbacks import EarlyStopping, ShortLines, StopAtNonFinite, TrainingProgress
from .data import EpochSampler, GroupCollator, GroupDataset, split_batches
from .losses import WeightedSum
from .meters import Meters
from .run_folder import RunFolder, cannot_resume
from .tevatron import TevatronTrainer
from .validation import Validation, measure_on_first_process

__all__ = ["HarpTrainer", "save_tokenizer"]

logger = logging.getLogger(__name__)
_REASON_CHARACTERS = 200


class HarpTrainer(TevatronTrainer):
    """Trains a `harp_plugin.models.trainable.TrainableModel` on pair groups.

    A batch holds whole groups, and each process gets its own. The total loss is the mean over all
    groups (for ``mlm``: over all masked tokens) of the global batch. It is the same for one
    process, for several processes, and with gradient accumulation. A head that the
    checkpoint lacked and that no loss trains is not saved.

    Attributes:
        untrained: names of the weights of such a head.
        folder: where checkpoints are committed; None for checkpoints of transformers alone.

    Args:
        model: the model to train.
        args: training options.
        train_dataset: pair groups to train on.
        data_collator: makes batches from them.
        loss: the weighted sum of losses.
        tokenizer: the tokenizer, which is saved with each checkpoint.
        held_out: pair groups whose losses evaluations compute.
        validation: measures the ranking in evaluations.

    Raises:
        HarpError: there are fewer groups than one global batch needs, one process would split its
            batches over several GPUs, or a training option makes no sense.
    """

    control: TrainerControl

    def __init__(
        self,
        *,
        model: TrainableModel,
        args: HarpTrainingArguments,
        train_dataset: GroupDataset,
        data_collator: GroupCollator,
        loss: WeightedSum,
        tokenizer: PreTrainedTokenizerBase,
        held_out: GroupDataset | None = None,
        validation: Validation | None = None,
    ) -> None:
        _check_batches(args, len(train_dataset))
        self.folder: RunFolder | None = None
        # The trainer would remove every folder whose name is like that of a checkpoint.
        self._save_total_limit = args.save_total_limit
        args = copy(args)
        args.save_total_limit = None
        args.remove_unused_columns = False  # a batch is made of pair groups, which have none
        if args.dataloader_pin_memory and args.device.type == "cuda":
            args.accelerator_config = copy(args.accelerator_config)
            args.accelerator_config.non_blocking = True
        compiling = _take_compiling(args)
        self.loss = loss
        self.validation = validation
        read = {"scored": loss.needs_scores, "masked": loss.needs_mlm}
        self.untrained = model.untrained_new(**read)
        # Untied, BERT's head of masked tokens has a bias that nothing reads.
        is_tied = getattr(model.config, "tie_word_embeddings", True)
        if model.is_packed and is_tied and args.ddp_find_unused_parameters is None:
            args.ddp_find_unused_parameters = False
            DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(
                model, model.untrained(**read)
            )
        self.sampler = EpochSampler(len(train_dataset), args.seed)
        self.early_stopping = EarlyStopping(args.early_stopping_patience or 1)
        with _option_errors():
            super().__init__(
                model=model,
                args=args,
                train_dataset=train_dataset,
                eval_dataset=held_out or validation,
                data_collator=data_collator,
                processing_class=tokenizer,
                callbacks=[TrainingProgress(self.sampler, self.early_stopping)],
            )
        # Losses are divided by the counts of the whole global batch, and not once more.
        self.model_accepts_loss_kwargs = True
        self.eval_dataset = held_out
        self.remove_callback(PrinterCallback)
        if self.pop_callback(ProgressCallback) is not None:
            self.add_callback(ShortLines)
        if args.early_stopping_patience:
            self.add_callback(self.early_stopping)
        groups = train_dataset.groups
        self.non_finite = StopAtNonFinite(args.device, groups, self.accelerator)
        if not args.logging_nan_inf_filter:
            self.add_callback(self.non_finite)
        self.meters = self.new_meters()
        if self.is_fsdp_enabled and not self.accelerator.is_fsdp2:
            model.is_packed = False
        self._compiled: list[nn.Module] = []
        self._plain_loss = loss
        if compiling is not None:
            encoder = model.ranking_model().base_model
            self._compiled = compiled_layers(encoder, *model.heads, **compiling)
            self.loss = loss.compiled(**compiling)
        elif args.device.type == "cpu":
            self._use_cpu_modules(model)

    def new_meters(self) -> Meters:
        """Return meters of the losses and tasks, with all sums 0."""
        return Meters(tuple(self.loss.weights), self.data_collator.tasks, self.args.device)

    def _use_cpu_modules(self, model: TrainableModel) -> None:
        use_cpu_modules(model)
        embedding = model.ranking_model().get_input_embeddings()
        if self.args.world_size == 1 and isinstance(embedding, nn.Embedding):
            keep_gradient(embedding)

    @property
    def best_step(self) -> int | None:
        """The step whose weights the model has at the end; None for the last step."""
        chosen = self.args.load_best_model_at_end and self.state.best_model_checkpoint
        return self.state.best_global_step if chosen else None

    # Those of Tevatron do not fit: see `harp_plugin.training.tevatron`.
    get_train_dataloader = Trainer.get_train_dataloader
    _prepare_inputs = Trainer._prepare_inputs

    def _get_train_sampler(self, train_dataset: object = None) -> EpochSampler:
        return self.sampler

    def get_batch_samples(
        self, epoch_iterator: Iterator[Batch], num_batches: int, device: torch.device
    ) -> tuple[list[Batch], Tensor]:
        """Collect the batches of one optimizer step.

        Returns:
            The batches, and the numbers of groups and of masked tokens in them over all processes,
            divided by the number of processes, fp32, (2,).
        """
        if self.control.should_training_stop:
            return [], torch.zeros(2, device=device)
        batches, _ = super().get_batch_samples(epoch_iterator, num_batches, device)
        counts = torch.tensor(
            [
                sum(len(batch["group_pairs"]) for batch in batches),
                sum(len(batch.get("mlm_labels", ())) for batch in batches),
            ],
            dtype=torch.float32,
        )
        return batches, self.accelerator.reduce(to_device(counts, device), "mean")

    def compute_loss(
        self,
        model: nn.Module,
        inputs: Batch,
        return_outputs: bool = False,
        num_items_in_batch: Tensor | None = None,
    ) -> Any:
        """Compute the total loss of a batch (eq. 16), and add its terms to the meters.

        Args:
            model: the model, as processes and compilers wrap it.
            inputs: the batch.
            return_outputs: whether the output of the model is returned too.
            num_items_in_batch: the counts of `get_batch_samples`; None counts this batch only.
        """
        trained = self.trained_model
        output = model(**{name: inputs[name] for name in trained.inputs if name in inputs})
        loss_inputs = trained.loss_inputs(output, inputs)
        scores, mask = loss_inputs.scores, loss_inputs.mask
        terms = self.loss.terms(loss_inputs)
        total = scores.new_zeros(())
        pair_losses, token_losses = scores.new_zeros(2, len(scores))
        for name, values in terms.items():
            weighted = self.loss.weights[name] * values
            total = total + weighted.sum() / self._count(name, values, num_items_in_batch)
            self.meters.add_loss(name, values)
            if self.loss.is_pair_loss(name):
                pair_losses = pair_losses + weighted.detach()
            else:
                token_losses.index_add_(0, inputs["masked_groups"], weighted.detach())
        if model.training:
            losses = pair_losses + token_losses
            self.non_finite.add(self.state.global_step, inputs["group_places"], losses)
        if self.loss.needs_scores:
            self.meters.add_groups(inputs["group_tasks"], pair_losses, scores, mask)
        return (total, output) if return_outputs else total

    def train(self, *args: Any, **kwargs: Any) -> Any:
        """Train as transformers does, with one thread beside a GPU.

        Threads that share an operation wait for each other, and workers that make batches keep them
        from their cores: with 16 threads, steps of MiniLM took half as long again.
        """
        # A model that is sharded may have its optimizer on the CPU.
        is_sharded = self.is_fsdp_enabled or self.is_deepspeed_enabled
        is_on_gpu = self.args.device.type == "cuda" and not is_sharded
        with one_thread() if is_on_gpu else nullcontext():
            return super().train(*args, **kwargs)

    def training_step(self, model: nn.Module, inputs: Batch, *arguments: Any) -> Tensor:
        """Compute the gradients of a batch; in the first one, layers that do not compile are left
        as they are."""
        if not self._compiled:
            return Trainer.training_step(self, model, inputs, *arguments)
        layers, self._compiled = self._compiled, []
        try:
            return Trainer.training_step(self, model, inputs, *arguments)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            logger.warning("the model is not compiled: %s", folded(error)[:_REASON_CHARACTERS])
        undo_compiling(self.trained_model.ranking_model().base_model, layers)
        self.loss = self._plain_loss
        model.zero_grad()
        self.meters = self.new_meters()
        return Trainer.training_step(self, model, inputs, *arguments)

    def _count(self, name: str, values: Tensor, counts: Tensor | None) -> Tensor | float:
        """Return the number of groups, or of masked tokens, that a loss is divided by."""
        if counts is None:
            return max(len(values), 1)
        return counts[0 if self.loss.is_pair_loss(name) else 1].clamp(min=torch.finfo().tiny)

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Log each loss, and the loss and accuracy of each task, besides the total loss."""
        if "loss" in logs:
            logs |= self.meters.drain(self.accelerator)
        super().log(logs, start_time)

    def evaluate(
        self,
        eval_dataset: GroupDataset | None = None,
        ignore_keys: list[str] | None = None,
        metric_key_prefix: str = "eval",
    ) -> dict[str, float]:
        """Compute losses on held-out groups, measure the ranking, or both.

        The evaluation has no effect on the training.

        Args:
            eval_dataset: groups to evaluate on, without measures of the ranking; None for the
                held-out groups and the validation of the trainer.
            ignore_keys: has no effect.
            metric_key_prefix: comes before each name.

        Raises:
            HarpError: there is nothing to evaluate, or there are fewer groups than processes.
        """
        validation = self.validation if eval_dataset is None else None
        groups = self.eval_dataset if eval_dataset is None else eval_dataset
        values: dict[str, float] = {}
        if groups is not None or validation is None:
            values |= self._losses_on(groups)
        if validation is not None:
            values |= measure_on_first_process(
                validation, self.trained_model, self.processing_class, self.gathered_weights()
            )
        metrics = {f"{metric_key_prefix}_{name}": value for name, value in values.items()}
        self.log(dict(metrics))
        self.control = self.callback_handler.on_evaluate(
            self.args, self.state, self.control, metrics
        )
        return metrics

    def _losses_on(self, dataset: GroupDataset | None) -> dict[str, float]:
        """Return the means that the log has, over all groups and processes, and the total loss.

        Raises:
            HarpError: there are fewer groups than processes.
        """
        size, processes = len(dataset or ()), self.args.world_size
        if dataset is None or size < processes:
            raise HarpError(f"{size} pair groups cannot be evaluated on {processes} processes")
        of_processes = split_batches(size, processes, self.args.eval_batch_size)
        batches = DataLoader(
            dataset,
            batch_sampler=of_processes[self.args.process_index],
            collate_fn=self.data_collator,
            num_workers=self.args.dataloader_num_workers,
            generator=torch.Generator(),
        )
        model = self._wrap_model(self.model, training=False).eval()
        training_meters, self.meters = self.meters, self.new_meters()
        try:
            with torch.no_grad(), self.compute_loss_context_manager():
                for batch in batches:
                    self.compute_loss(model, self._prepare_inputs(batch))
            means = self.meters.drain(self.accelerator)
        finally:
            self.meters = training_meters
        weights = self.loss.weights.items()
        total = sum(weight * means.get(f"loss/{name}", 0.0) for name, weight in weights)
        return means | {"loss": total}

    @property
    def trained_model(self) -> TrainableModel:
        """The model itself, without the wrappers of processes and compilers."""
        model = self.model
        return model if isinstance(model, TrainableModel) else self.accelerator.unwrap_model(model)

    def gathered_weights(self) -> dict[str, Tensor] | None:
        """Return the weights of the whole model on the first process; None if it is not sharded."""
        is_sharded = self.is_fsdp_enabled or (
            self.is_deepspeed_enabled and is_deepspeed_zero3_enabled()
        )
        return self.accelerator.get_state_dict(self.model_wrapped) if is_sharded else None

    def _evaluate(self, trial, ignore_keys_for_eval, skip_scheduler: bool = False):
        # A resumed run was already evaluated at its start; only there skip_scheduler is set.
        if skip_scheduler and self.state.global_step:
            return {}
        return super()._evaluate(trial, ignore_keys_for_eval, skip_scheduler)

    @property
    def facts(self) -> dict[str, Any]:
        """What the manifest says of the model at the present step.

        These are the number of optimizer steps, the names of the weights that were drawn at random
        when the run began, and those of them that no loss trained, which the model lacks.
        """
        return {
            "steps": self.state.global_step,
            "fresh_weights": list(self.trained_model.new_weights),
            "untrained_weights": list(self.untrained),
        }

    def _get_output_dir(self, trial: Any) -> str:
        return super()._get_output_dir(trial) if self.folder is None else str(self.folder.staging)

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        """Write a checkpoint as transformers does, and rename it when all processes are done."""
        super()._save_checkpoint(model, trial)
        if self.folder is None:
            return
        state, name = self.state, f"{PREFIX_CHECKPOINT_DIR}-{self.state.global_step}"
        best = self.folder.path / f"{PREFIX_CHECKPOINT_DIR}-{state.best_global_step}"
        if best.name == name or best.is_dir():
            state.best_model_checkpoint = str(best)
        self.accelerator.wait_for_everyone()
        if self.args.should_save:
            state.save_to_json(str(self.folder.staging / name / TRAINER_STATE_NAME))
            self.folder.commit_checkpoint(name, state.log_history, self.facts)
            self.remove_old_checkpoints()
        self.accelerator.wait_for_everyone()

    def remove_old_checkpoints(self) -> None:
        """Remove the checkpoints beyond ``save_total_limit``."""
        assert self.folder is not None
        self.folder.remove_old(self._save_total_limit, self.state.best_model_checkpoint)

    def _save(self, output_dir: str | None = None, state_dict: dict | None = None) -> None:
        if self.args.should_save:
            folder = output_dir or self.args.output_dir
            self.trained_model.save(folder, state_dict, self.untrained)
            save_tokenizer(self.processing_class, folder)

    def _load_from_checkpoint(
        self, resume_from_checkpoint: str, model: nn.Module | None = None
    ) -> None:
        if self.is_fsdp_enabled:
            super()._load_from_checkpoint(resume_from_checkpoint, model)
        else:
            unwrapped = self.accelerator.unwrap_model(model or self.model)
            unwrapped.load_weights(resume_from_checkpoint, self.untrained)

    def create_optimizer(self, *args: Any, **kwargs: Any) -> Any:
        """Make the optimizer of the options ``optim`` and ``optim_args``.

        Raises:
            HarpError: they make no sense, or a package is missing.
        """
        with _option_errors():
            return super().create_optimizer(*args, **kwargs)

    def create_scheduler(self, *args: Any, **kwargs: Any) -> Any:
        """Make the schedule of the options ``lr_scheduler_type`` and ``lr_scheduler_kwargs``.

        Raises:
            HarpError: they make no sense.
        """
        with _option_errors():
            return super().create_scheduler(*args, **kwargs)

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        with _checkpoint_errors(checkpoint):
            super()._load_optimizer_and_scheduler(checkpoint)

    def _load_rng_state(self, checkpoint: str | None) -> None:
        with _checkpoint_errors(checkpoint):
            super()._load_rng_state(checkpoint)

    def _load_best_model(self) -> None:
        if self.is_fsdp_enabled or self.is_deepspeed_enabled:
            super()._load_best_model()
        else:
            self._load_from_checkpoint(str(self.state.best_model_checkpoint))


_INDUCTOR_OPTIONS = {"fallback_random": True, "triton.mix_order_reduction": False}
"""Dropout draws its numbers as without compiling, several in one call; the gradients of norms and
those of their weights are two kernels. On an H200 both are faster."""


def _take_compiling(args: HarpTrainingArguments) -> dict[str, Any] | None:
    """Take the options of `torch.compile` from those of the trainer, which would compile the whole
    model, with a break in each step; None if nothing is to be compiled."""
    if not args.torch_compile:
        return None
    with _option_errors():
        backend = DynamoBackend(str(args.torch_compile_backend).upper()).value.lower()
    mode = args.torch_compile_mode
    args.torch_compile, args.torch_compile_backend, args.torch_compile_mode = False, None, None
    if backend != "inductor":
        return {"backend": backend} | ({"mode": mode} if mode else {})
    modes, known = torch._inductor.list_mode_options(), torch._inductor.list_options()
    if mode and mode not in modes:
        raise HarpError(f"torch_compile_mode is {mode!r}: it must be one of {', '.join(modes)}")
    options = {name: value for name, value in _INDUCTOR_OPTIONS.items() if name in known}
    return {"backend": backend, "options": modes[mode or "default"] | options}


@contextmanager
def _option_errors() -> Iterator[None]:
    """Replace an error of a library about the value of an option by one clear line."""
    try:
        yield
    except (ValueError, TypeError, ImportError) as error:
        raise HarpError(f"training options do not make sense: {folded(error)}") from error


@contextmanager
def _checkpoint_errors(checkpoint: str | None) -> Iterator[None]:
    """Replace an error of PyTorch about a state that it cannot read by one clear line."""
    try:
        yield
    except (HarpError, MemoryError):
        raise
    except Exception as error:
        raise cannot_resume(Path(str(checkpoint)), error) from error


def save_tokenizer(tokenizer: PreTrainedTokenizerBase, folder: str | Path) -> None:
    """Save a tokenizer without the truncation and padding of its last call.

    Where it joins pairs as Tevatron does, Tevatron's reranker is told not to ask for flash
    attention.
    """
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    tokenizer.save_pretrained(folder)
    if joins_pairs(tokenizer):
        write_text(Path(folder) / "reranker_config.json", '{"attn_implementation": "sdpa"}\n')


def _check_batches(args: HarpTrainingArguments, groups: int) -> None:
    """Check that each batch can have whole groups, and that each group belongs to one process.

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
