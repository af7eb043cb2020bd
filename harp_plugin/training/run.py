"""Run a training from its recipe to its checkpoint; a stopped run continues where it stopped."""

from __future__ import annotations

import logging
import time
from contextlib import nullcontext
from copy import copy
from functools import partial
from pathlib import Path

from ..errors import HarpError
from ..models.loading import load_tokenizer
from ..models.masking import TokenMasker
from ..models.pairs import joining_pairs
from ..tasks import PreTrainingData
from ..tasks.registry import check_negatives
from ..work.lock import one_writer
from .arguments import HarpDataArguments, HarpModelArguments, HarpTrainingArguments, PairOptions
from .data import GroupCollator, GroupDataset, PairGroups, TaughtGroups, Teacher, groups_per_batch
from .losses import WeightedSum
from .recipe import check_output_dir, provenance
from .run_folder import RunFolder
from .trainer import HarpTrainer
from .validation import Validation

__all__ = ["build_trainer", "fit", "train"]

logger = logging.getLogger(__name__)
_SECONDS_TO_DROP_TENSORS = 0.5


def train(
    model_args: HarpModelArguments,
    data_args: HarpDataArguments,
    training_args: HarpTrainingArguments,
    *,
    validation: Validation | None = None,
    teacher: Teacher | None = None,
) -> Path:
    """Pre-train on what `harp build` wrote.

    A run that was stopped continues from its last whole checkpoint; a finished run is left as it
    is.

    Args:
        model_args: options of the model.
        data_args: options of the data and the losses.
        training_args: options of the training.
        validation: measures the ranking; needed if ``validation_dataset`` is named.
            `harp_plugin.evaluation.training` makes it, and the teacher.
        teacher: scores the pairs; needed if ``teacher`` is named.

    Returns:
        The output folder: the trained checkpoint, ``manifest.json`` and ``training_log.json``.

    Raises:
        HarpError: the recipe, the model or the build has an error, or ``output_dir`` holds the work
            of another recipe.
    """
    data_args.check()
    check_negatives(data_args.task_weights, data_args.draw_options)
    if data_args.teacher is not None and teacher is None:
        raise HarpError("teacher is named: call harp_plugin.evaluation.training instead")
    draw = partial(
        PreTrainingData,
        tasks=data_args.task_weights,
        seed=training_args.seed,
        draw=data_args.draw_options,
    )
    groups: PairGroups = draw(data_args.build_dir, groups_per_epoch=data_args.groups_per_epoch)
    held_out: PairGroups | None = None
    if (build_dir := training_args.validation_build_dir) is not None:
        held_out = draw(build_dir, groups_per_epoch=training_args.validation_groups)
    if teacher is not None:
        groups = TaughtGroups(groups, teacher)
        held_out = None if held_out is None else TaughtGroups(held_out, teacher)
    return fit(
        groups, model_args, data_args, training_args, held_out=held_out, validation=validation
    )


def fit(
    groups: PairGroups,
    model_args: HarpModelArguments,
    data_args: PairOptions,
    training_args: HarpTrainingArguments,
    *,
    held_out: PairGroups | None = None,
    validation: Validation | None = None,
) -> Path:
    """Train on any source of pair groups.

    Args:
        groups: pair groups to train on.
        model_args: options of the model.
        data_args: options of the data and the losses.
        training_args: options of the training.
        held_out: pair groups to evaluate on.
        validation: measures the ranking, as in `train`.

    Returns:
        The output folder, as in `train`.

    Raises:
        HarpError: for the same reasons as in `train`.
    """
    if training_args.validation_dataset is not None and validation is None:
        raise HarpError("validation_dataset is named: call harp_plugin.evaluation.training instead")
    _check_kind(model_args, data_args.weighted_sum())
    check_output_dir(str(training_args.output_dir), model_args, data_args, training_args)
    folder = RunFolder(
        Path(str(training_args.output_dir)),
        provenance(model_args, data_args, training_args, groups, held_out),
        model_args.kind.description,
        getattr(groups, "counts", {}),
        training_args.rules,
    )
    if folder.artifact.is_finished():
        logger.info("%s is finished: nothing to train", folder.path)
        return folder.path
    if training_args.process_index == 0:
        for sentence in getattr(groups, "shortages", list)():
            logger.warning("%s", sentence)
        if training_args.gradient_accumulation_steps > 1 and (
            names := data_args.weighted_sum().reading("batch_scores")
        ):
            logger.warning(
                "loss %r takes its negatives from one step of %d, not from the whole batch: the "
                "loss differs from that of one step",
                names[0],
                training_args.gradient_accumulation_steps,
            )
    trainer = build_trainer(groups, model_args, data_args, training_args, held_out, validation)
    is_writer = training_args.process_index == 0
    with one_writer(folder.path) if is_writer else nullcontext():
        _train(trainer, folder, training_args)
    return folder.path


def _check_kind(model_args: HarpModelArguments, loss: WeightedSum) -> None:
    """Check that the losses are made for the kind of model."""
    for field, reason in model_args.kind.cannot.items():
        if names := loss.reading(field):
            raise HarpError(f"losses: {names[0]!r} cannot be computed: {reason}")


def _train(trainer: HarpTrainer, folder: RunFolder, training_args: HarpTrainingArguments) -> None:
    """Train from the folder's last checkpoint to its end, and publish the model there."""
    with training_args.main_process_first(local=False):
        if trainer.is_world_process_zero():
            folder.start()
        checkpoint = folder.last_checkpoint(training_args.resume_from_checkpoint)
    trainer.folder = folder
    trainer.train(resume_from_checkpoint=checkpoint)
    trainer.save_model(str(folder.partial))
    if trainer.is_world_process_zero():
        trainer.remove_old_checkpoints()  # what a kill has kept from it
        facts = trainer.facts | {"best_step": trainer.best_step}
        folder.publish(trainer.state.log_history, facts)
    trainer.accelerator.wait_for_everyone()
    if training_args.world_size > 1:
        # A thread of Gloo drops the tensors of the last exchange after the exchange is over; a
        # process that ends before then is aborted (pull request 179291 of pytorch).
        time.sleep(_SECONDS_TO_DROP_TENSORS)


def build_trainer(
    groups: PairGroups,
    model_args: HarpModelArguments,
    data_args: PairOptions,
    training_args: HarpTrainingArguments,
    held_out: PairGroups | None = None,
    validation: Validation | None = None,
) -> HarpTrainer:
    """Load model and tokenizer and make the trainer.

    Args:
        groups: pair groups to train on.
        model_args: options of the model.
        data_args: options of the data and the losses.
        training_args: options of the training.
        held_out: pair groups to evaluate on.
        validation: measures the ranking.
    """
    seed, loss = training_args.seed, data_args.weighted_sum()
    tokenizer = load_tokenizer(model_args.tokenizer_name or model_args.model, model_args.model)
    if model_args.pair_format == "tevatron":
        tokenizer = joining_pairs(tokenizer)
    model = model_args.load(seed)
    if model.max_length is not None and data_args.max_length > model.max_length:
        raise HarpError(
            f"max_length is {data_args.max_length}, but {model_args.model} reads at "
            f"most {model.max_length} tokens: lower it"
        )
    masker = None
    if loss.needs_mlm:
        masker = TokenMasker.from_tokenizer(
            tokenizer, probability=data_args.mlm_probability, seed=seed
        )
    collator = GroupCollator(
        model.batches(tokenizer, max_length=data_args.max_length, masker=masker),
        tuple(data_args.task_weights),
        query_limits=data_args.query_limits,
        new_masks=bool(data_args.redraw_each_epoch),
    )
    dataset = GroupDataset(groups)
    if (tokens := training_args.tokens_per_batch) is not None:
        training_args = copy(training_args)
        training_args.per_device_train_batch_size = groups_per_batch(dataset, collator, tokens)
    return HarpTrainer(
        model=model,
        args=training_args,
        train_dataset=dataset,
        data_collator=collator,
        loss=loss,
        tokenizer=tokenizer,
        held_out=None if held_out is None else GroupDataset(held_out),
        validation=validation,
    )
