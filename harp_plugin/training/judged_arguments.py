"""Options of `harp finetune`, in the style of the other recipes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ..collections.dataset_queries import DatasetQueries
from ..collections.json_lines_queries import JsonLinesQueries
from ..errors import HarpError
from ..limits import COUNT, MAX_LENGTH, NUMBER, SHARE, check_limits
from ..option_names import old_names, takes_old_names
from .arguments import HarpModelArguments, HarpTrainingArguments, weights
from .data import query_limits
from .judged import TASK, JudgedGroups
from .losses import WeightedSum

OF_A_DATASET = (
    "negatives_run",
    "teacher_run",
    "min_label",
    "depth",
    "skip_top",
    "judged_negatives",
)
LIMITS = {
    **dict.fromkeys(("negatives", "depth", "queries"), COUNT),
    "skip_top": NUMBER,
    "max_length": MAX_LENGTH,
    "mlm_probability": SHARE,
}
SHOWN = frozenset(
    {
        *(
            "model",
            "dataset",
            "negatives_run",
            "teacher_run",
            "train_file",
            "fields",
            "queries",
            "query_ids",
        ),
        *("min_label", "negatives", "depth", "skip_top", "judged_negatives", "output_dir"),
        *("losses", "max_length", "per_device_train_batch_size", "gradient_accumulation_steps"),
        *("learning_rate", "num_train_epochs", "max_steps", "warmup_ratio", "bf16", "save_steps"),
        *(
            "logging_steps",
            "dataloader_num_workers",
            "report_to",
            "seed",
            "overwrite",
            "quiet",
        ),
    }
)
"""The options that a newcomer needs."""


@takes_old_names
@dataclass
class FinetuneDataArguments:
    """What is learnt from which judgements, and how negatives are drawn."""

    dataset: str | None = field(
        default=None,
        metadata={"help": "ir_datasets id with documents, queries and qrels, such as vaswani."},
    )
    negatives_run: str | None = field(
        default=None,
        metadata={
            "help": "TREC run (.gz too) of the dataset's queries, from which hard negatives are "
            "drawn. Default: the dataset's scoreddocs.",
            "aliases": old_names("run_file"),
        },
    )
    teacher_run: str | None = field(
        default=None,
        metadata={
            "help": "TREC run with the scores of a teacher, for the losses margin_mse and kl. In "
            "JSON lines, the `score` of each passage is read instead."
        },
    )
    train_file: list[str] | None = field(
        default=None,
        metadata={"help": "Files of Tevatron's JSON lines, in place of a dataset."},
    )
    fields: list[str] | None = field(
        default=None,
        metadata={
            "help": "Fields of a document whose texts are joined by a space, such as title url "
            "body. Default: the text that the dataset recommends; in JSON lines, title "
            "and text."
        },
    )
    queries: int | None = field(
        default=None,
        metadata={
            "help": "Learn from this number of queries, which the seed draws. A smaller "
            "number is a part of a larger one."
        },
    )
    query_ids: str | None = field(
        default=None,
        metadata={
            "help": "File of the ids of the queries that may be learnt from, "
            "with one id on each line."
        },
    )
    min_label: int = field(default=1, metadata={"help": "Lowest label of a relevant document."})
    negatives: int = field(
        default=7, metadata={"help": "How many hard negatives a group has at most."}
    )
    depth: int = field(
        default=100, metadata={"help": "Negatives are drawn from so many results of each query."}
    )
    skip_top: int = field(
        default=0,
        metadata={
            "help": "Draw no negative from this number of best unjudged documents of the run: "
            "they may be relevant."
        },
    )
    judged_negatives: bool = field(
        default=False,
        metadata={
            "help": "Draw documents that are judged below --min-label too, where the run "
            "does not have them."
        },
    )
    redraw_each_epoch: bool = field(
        default=True,
        metadata={
            "help": "Draw documents and masks anew in each epoch. Without it, all epochs have the "
            "same ones.",
            "aliases": old_names("fresh"),
        },
    )
    losses: dict[str, Any] | str | None = field(
        default=None,
        metadata={
            "help": "Losses with their weights in the sum, as JSON, or with their parameters, such "
            'as {"lce": {"temperature": 2}}. Default: {"lce": 1}; the '
            'paper\'s is {"bce": 1}.'
        },
    )
    max_length: int = field(
        default=512,
        metadata={
            "help": "How many tokens a pair has at most, special tokens included. Longer "
            "documents are cut."
        },
    )
    max_query_length: int | None = field(
        default=None,
        metadata={
            "help": "Most tokens of a query. Default: a pair that is too long leaves half of "
            "max_length to each of its texts."
        },
    )
    mlm_probability: float = field(
        default=0.15, metadata={"help": "Share of a document's tokens that an mlm loss masks."}
    )

    def __post_init__(self) -> None:
        self.losses = weights("losses", self.losses, {"lce": 1.0})
        if self.dataset is not None:
            self.dataset = self.dataset.removeprefix("irds:")

    def check(self) -> None:
        """Find what is wrong without opening the data.

        Raises:
            HarpError: there are two sources or none, an option has no sense for the source or the
                losses, a number has no sense, or as `weighted_sum` and `query_limits` say.
        """
        check_limits(self, LIMITS)
        distilling = self.weighted_sum().distilling
        _ = self.query_limits
        if bool(self.dataset) == bool(self.train_file):
            raise HarpError("name either a dataset or a train_file to learn from")
        if self.train_file:
            defaults = {option.name: option.default for option in fields(self)}
            for name in OF_A_DATASET:
                if getattr(self, name) != defaults[name]:
                    raise HarpError(f"{name} needs a dataset: a train_file lists its negatives")
        if self.dataset and distilling and not self.teacher_run:
            raise HarpError(
                f"losses: {distilling[0]!r} reads a teacher's scores: give a teacher_run"
            )
        if self.teacher_run and not distilling:
            raise HarpError("teacher_run is read by no loss: add margin_mse or kl, or leave it out")
        if self.fields == []:
            raise HarpError("fields is empty: name one, or leave it out")

    @property
    def task_weights(self) -> dict[str, float]:
        """The one task."""
        return {TASK: 1.0}

    @property
    def query_limits(self) -> dict[str, int | None]:
        """Most tokens of a query; see `harp_plugin.training.data.query_limits`."""
        return query_limits(self.max_query_length, (TASK,), self.max_length)

    def weighted_sum(self) -> WeightedSum:
        """The total loss.

        Raises:
            HarpError: a loss is not registered, a weight is negative, or no loss is left.
        """
        return WeightedSum(weights("losses", self.losses, {}))

    def groups(self, seed: int, left_out: Collection[str] = ()) -> JudgedGroups:
        """Open the data, without the queries of the dataset whose ids are left out.

        Raises:
            HarpError: a file is missing, or as `DatasetQueries` and `JsonLinesQueries` say.
        """
        for name in ("negatives_run", "teacher_run", "query_ids"):
            if (path := getattr(self, name)) is not None and not Path(path).is_file():
                raise HarpError(f"{name} {path}: there is no such file")
        source: DatasetQueries | JsonLinesQueries
        if self.train_file:
            source = JsonLinesQueries(
                self.train_file,
                fields=self.fields or ("title", "text"),
                teacher=bool(self.weighted_sum().distilling),
                queries=self.queries,
                query_ids=self.query_ids,
                seed=seed,
            )
        else:
            source = DatasetQueries(
                self.dataset or "",
                run=self.negatives_run,
                teacher=self.teacher_run,
                fields=self.fields,
                min_label=self.min_label,
                depth=self.depth,
                skip_top=self.skip_top,
                judged_negatives=self.judged_negatives,
                queries=self.queries,
                query_ids=self.query_ids,
                left_out=left_out,
                seed=seed,
            )
        return JudgedGroups(
            source, negatives=self.negatives, seed=seed, redraw_each_epoch=self.redraw_each_epoch
        )


FINETUNING = (HarpModelArguments, FinetuneDataArguments, HarpTrainingArguments)
"""The options of `harp finetune`."""
