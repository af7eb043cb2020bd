"""Train a reranker on judged queries, by the same trainer as in pre-training."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from ..errors import HarpError
from .arguments import HarpModelArguments, HarpTrainingArguments
from .judged_arguments import FinetuneDataArguments
from .run import fit
from .validation import Validation

__all__ = ["finetune"]


def finetune(
    model_args: HarpModelArguments,
    data_args: FinetuneDataArguments,
    training_args: HarpTrainingArguments,
    *,
    validation: Validation | None = None,
) -> Path:
    """Train a reranker on judged queries; an epoch has one group for each query.

    The model does not learn from queries that the validation uses, unless ``validation_held_out``
    is off. A run that was stopped continues from its last whole checkpoint; a finished run is left
    as it is.

    Args:
        model_args: options of the model.
        data_args: options of the data and the losses.
        training_args: options of the training.
        validation: measures the ranking; needed if ``validation_dataset`` is named.
            `harp_plugin.evaluation.training` makes it.

    Returns:
        The output folder: the trained checkpoint, ``harp_manifest.json`` and ``training_log.json``.

    Raises:
        HarpError: the recipe, the model or the data have an error, or ``output_dir`` holds the work
            of another recipe.
    """
    data_args.check()
    if training_args.validation_build_dir is not None:
        raise HarpError("validation_build_dir is for pre-training: name a validation_dataset")
    left_out: Collection[str] = ()
    if validation is not None and validation.dataset == data_args.dataset:
        left_out = validation.queries if training_args.validation_held_out else ()
    with training_args.main_process_first(local=True):
        groups = data_args.groups(training_args.seed, left_out)
    return fit(groups, model_args, data_args, training_args, validation=validation)
