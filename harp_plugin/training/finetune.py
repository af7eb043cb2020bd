"""Train a reranker on judged queries, by the same trainer as in pre-training."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Literal

from ..collections.dataset_queries import DatasetQueries
from ..collections.json_lines_queries import JsonLinesQueries
from ..errors import HarpError
from ..options import Count, Number
from .arguments import SHOWN_IN_BOTH, HarpModelArguments, HarpTrainingArguments, PairOptions
from .judged import TASK, JudgedGroups
from .run import fit
from .validation import Validation

__all__ = ["FINETUNING", "SHOWN", "FinetuneDataArguments", "finetune"]

_NEGATIVES = ("min_label", "depth", "skip_top", "judged_negatives")
"""Options of `DatasetQueries`."""
_DATASET_OPTIONS = ("negatives_run", "teacher_run", *_NEGATIVES)
"""Options that need a dataset."""
SHOWN = SHOWN_IN_BOTH | {
    *("dataset", "negatives_run", "teacher_run", "train_file", "fields", "queries", "query_ids"),
    *("min_label", "negatives_per_group", "depth", "skip_top", "judged_negatives"),
}
"""Options that the short help of `harp finetune` shows."""


@dataclass(kw_only=True)
class FinetuneDataArguments(PairOptions):
    """What the model learns from which judgments, and how negatives are drawn.

    Attributes:
        dataset: Id in ir_datasets of documents, queries and qrels, such as vaswani.
        negatives_run: TREC run (.gz too) of the dataset's queries, from which hard negatives are
            drawn. Default: the scoreddocs of the dataset.
        teacher_run: TREC run with the scores of a teacher, for the losses margin_mse and kl. In
            JSON lines, the `score` of each passage is read instead.
        train_file: Files of Tevatron's JSON lines, in place of a dataset.
        fields: Fields of a document whose texts are joined by a space, such as title url body.
            Default: the text that the dataset recommends; in JSON lines, title and text.
        queries: Learn from this number of queries, which the seed draws. A smaller number is a part
            of a larger one.
        query_ids: File of the ids of the queries that may be learned from, with one id on each
            line.
        passages: What is read of a long document: its beginning (first), or its first words and the
            passage that shares most words with the query (matching).
        min_label: Lowest label of a relevant document.
        negatives_per_group: How many hard negatives a group has at most.
        depth: Negatives are drawn from so many results of each query.
        skip_top: Draw no negative from this number of best unjudged documents of the run: they may
            be relevant.
        judged_negatives: Draw documents that are judged below --min-label too, where the run does
            not have them.
    """

    default_losses: ClassVar[Mapping[str, float]] = {"lce": 1.0}

    dataset: str | None = None
    negatives_run: str | None = None
    teacher_run: str | None = None
    train_file: list[str] | None = None
    fields: list[str] | None = None
    queries: Count | None = None
    query_ids: str | None = None
    passages: Literal["first", "matching"] = "first"
    min_label: int = 1
    negatives_per_group: Count = 7
    depth: Count = 100
    skip_top: Number = 0
    judged_negatives: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dataset is not None:
            self.dataset = self.dataset.removeprefix("irds:")

    def check(self) -> None:
        """Check the options without opening the data.

        Raises:
            HarpError: there are two sources or none, an option does not fit the source or the
                losses, or `weighted_sum` or `query_limits` raises the error.
        """
        self.weighted_sum()
        _ = self.query_limits
        if bool(self.dataset) == bool(self.train_file):
            raise HarpError("name either a dataset or a train_file to learn from")
        if self.train_file:
            defaults = {option.name: option.default for option in fields(self)}
            for name in _DATASET_OPTIONS:
                if getattr(self, name) != defaults[name]:
                    raise HarpError(f"{name} needs a dataset: a train_file lists its negatives")
        is_named = self.teacher_run is not None
        self.check_teacher("teacher_run", is_named=is_named, is_needed=self.dataset is not None)
        if self.fields == []:
            raise HarpError("fields is empty: name one, or leave it out")

    @property
    def task_weights(self) -> dict[str, float]:
        """The weight of the only task."""
        return {TASK: 1.0}

    def groups(self, seed: int, left_out: Collection[str] = ()) -> JudgedGroups:
        """Open the data, without the queries of the dataset whose ids are left out.

        Raises:
            HarpError: `DatasetQueries` or `JsonLinesQueries` raises the error.
        """
        source: DatasetQueries | JsonLinesQueries
        drawn: dict[str, Any] = {"queries": self.queries, "query_ids": self.query_ids, "seed": seed}
        if self.train_file:
            source = JsonLinesQueries(
                self.train_file,
                fields=self.fields or ("title", "text"),
                teacher=bool(self.weighted_sum().reading("teacher_scores")),
                **drawn,
            )
        else:
            source = DatasetQueries(
                self.dataset or "",
                run=self.negatives_run,
                teacher=self.teacher_run,
                fields=self.fields,
                left_out=left_out,
                **{name: getattr(self, name) for name in _NEGATIVES},
                **drawn,
            )
        return JudgedGroups(
            source,
            negatives_per_group=self.negatives_per_group,
            seed=seed,
            redraw_each_epoch=self.redraw_each_epoch,
            passages=self.passages,
        )


FINETUNING = (HarpModelArguments, FinetuneDataArguments, HarpTrainingArguments)
"""The options of `harp finetune`."""


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
        The output folder: the trained checkpoint, ``manifest.json`` and ``training_log.json``.

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
