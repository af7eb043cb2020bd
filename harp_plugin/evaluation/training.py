"""Train models and measure their ranking during the training: `harp train`, `harp finetune`.

`harp_plugin.training` does not import the evaluation; this module combines them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..training import finetune as finetuning
from ..training import run as pretraining
from ..training.arguments import HarpDataArguments, HarpModelArguments, HarpTrainingArguments
from ..training.finetune import FinetuneDataArguments

if TYPE_CHECKING:
    from ..training.data import Teacher
    from .validation import RankingValidation

__all__ = ["finetune", "ranking_validation", "train"]


def train(
    model_args: HarpModelArguments,
    data_args: HarpDataArguments,
    training_args: HarpTrainingArguments,
) -> Path:
    """Pre-train as `harp_plugin.training.run.train` does.

    It measures the ranking and asks a teacher for scores, where the options name a dataset for
    validation and a teacher.
    """
    data_args.check()
    validation = ranking_validation(training_args, data_args.max_length)
    return pretraining.train(
        model_args,
        data_args,
        training_args,
        validation=validation,
        teacher=_teacher(data_args, training_args),
    )


def _teacher(data_args: HarpDataArguments, training_args: HarpTrainingArguments) -> Teacher | None:
    if data_args.teacher is None:
        return None
    from .teachers import make_teacher

    # Processes that read data cannot use a GPU.
    if training_args.chooses_workers:
        training_args.dataloader_num_workers = 0
    reads_apart = bool(training_args.dataloader_num_workers)
    return make_teacher(
        data_args.teacher,
        max_length=data_args.max_length,
        device="cpu" if reads_apart else str(training_args.device),
        dtype="bfloat16" if training_args.bf16 else "float32",
    )


def finetune(
    model_args: HarpModelArguments,
    data_args: FinetuneDataArguments,
    training_args: HarpTrainingArguments,
) -> Path:
    """Fine-tune as `harp_plugin.training.finetune.finetune` does, and measure the ranking.

    If the model learns from the same dataset that validates it, the validation queries are also
    drawn from ``query_ids``, so that the held-out queries of a fold do not choose a checkpoint.
    """
    data_args.check()
    same = training_args.validation_dataset == data_args.dataset
    query_ids = data_args.query_ids if same else None
    validation = ranking_validation(training_args, data_args.max_length, query_ids)
    return finetuning.finetune(model_args, data_args, training_args, validation=validation)


def ranking_validation(
    training_args: HarpTrainingArguments, max_length: int, query_ids: str | None = None
) -> RankingValidation | None:
    """Return an object that measures the ranking; None if the options name no validation dataset.

    Args:
        training_args: options of the training.
        max_length: most tokens of a pair.
        query_ids: file of the query ids to draw from, if the options do not name one.

    Raises:
        HarpError: the dataset, the run, a measure or the file of ids has an error.
    """
    if training_args.validation_dataset is None:
        return None
    from .validation import RankingValidation

    with training_args.main_process_first(local=True):
        return RankingValidation(
            training_args,
            query_ids=query_ids,
            seed=training_args.seed,
            max_length=max_length,
            index_dir=Path(str(training_args.output_dir)).parent / "index",
            quiet=bool(training_args.disable_tqdm) or training_args.process_index > 0,
        )
