"""`harp train` and `harp finetune` for Python: training, with its ranking watched.

Training itself knows nothing of evaluation; here the two are put together.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..training import finetune as finetuning
from ..training import run as pretraining
from ..training.arguments import HarpDataArguments, HarpModelArguments, HarpTrainingArguments
from ..training.judged_arguments import FinetuneDataArguments

if TYPE_CHECKING:
    from ..evaluation.validation import RankingValidation


def train(
    model_args: HarpModelArguments,
    data_args: HarpDataArguments,
    training_args: HarpTrainingArguments,
) -> Path:
    """`harp_plugin.training.run.train`, with the ranking that the options ask for measured."""
    data_args.check()
    validation = ranking_validation(training_args, data_args.max_length)
    return pretraining.train(model_args, data_args, training_args, validation=validation)


def finetune(
    model_args: HarpModelArguments,
    data_args: FinetuneDataArguments,
    training_args: HarpTrainingArguments,
) -> Path:
    """`harp_plugin.training.finetune.finetune`, with the ranking asked for measured.

    Queries of the dataset that is learnt from are drawn from ``query_ids`` too, so that a fold's
    held-out queries choose no checkpoint.
    """
    data_args.check()
    same = training_args.validation_dataset == data_args.dataset
    query_ids = data_args.query_ids if same else None
    validation = ranking_validation(training_args, data_args.max_length, query_ids)
    return finetuning.finetune(model_args, data_args, training_args, validation=validation)


def ranking_validation(
    training_args: HarpTrainingArguments, max_length: int, query_ids: str | None = None
) -> RankingValidation | None:
    """What the options ask to be measured, None where they ask for nothing.

    Args:
        training_args: the options.
        max_length: tokens of a pair.
        query_ids: file of the query ids to draw from, unless the options name one.

    Raises:
        HarpError: the dataset, the run, a measure or the file of ids is at fault.
    """
    if training_args.validation_dataset is None:
        return None
    from ..evaluation.validation import RankingValidation

    with training_args.main_process_first(local=True):
        return RankingValidation(
            training_args,
            query_ids=query_ids,
            seed=training_args.seed,
            max_length=max_length,
            index_dir=Path(str(training_args.output_dir)).parent / "index",
            quiet=bool(training_args.disable_tqdm),
        )
