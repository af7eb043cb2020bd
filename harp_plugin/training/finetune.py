"""`harp finetune`: train a reranker on judged queries, through the same trainer."""

from __future__ import annotations

from pathlib import Path

from .arguments import HarpModelArguments, HarpTrainingArguments
from .judged_arguments import FinetuneDataArguments
from .run import fit


def finetune(
    model_args: HarpModelArguments,
    data_args: FinetuneDataArguments,
    training_args: HarpTrainingArguments,
) -> Path:
    """Train a reranker on judged queries; an epoch has one group of each.

    A run that was stopped goes on from its last whole checkpoint, a finished one is left as it is.

    Returns:
        The output folder: the trained checkpoint, ``harp_manifest.json`` and ``training_log.json``.

    Raises:
        HarpError: the recipe, the model or the data are at fault, or ``output_dir`` holds the work
            of another recipe.
    """
    data_args.check()
    with training_args.main_process_first(local=True):
        groups = data_args.groups(training_args.seed)
    return fit(groups, model_args, data_args, training_args)
