"""Options of `harp finetune`: judged queries, negatives, losses."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ..collections.dataset_queries import DatasetQueries
from ..collections.json_lines_queries import JsonLinesQueries
from ..errors import HarpError
from ..limits import COUNT, NUMBER, check_limits
from .arguments import HarpModelArguments, HarpTrainingArguments
from .judged import TASK, JudgedGroups
from .pair_arguments import (
    PAIR_LIMITS,
    SHOWN_IN_BOTH,
    PairArguments,
    losses_help,
    max_length_option,
    max_query_length_help,
    mlm_probability_option,
    read_weights,
)

__all__ = ["FINETUNING", "SHOWN", "FinetuneDataArguments"]

_DATASET_OPTIONS = (
    "negatives_run",
    "teacher_run",
    "min_label",
    "depth",
    "skip_top",
    "judged_negatives",
)
"""Options that need a dataset."""
_LIMITS = {
    **dict.fromkeys(("negatives_per_group", "depth", "queries"), COUNT),
    "skip_top": NUMBER,
    **PAIR_LIMITS,
}
SHOWN = SHOWN_IN_BOTH | {
    *("dataset", "negatives_run", "teacher_run", "train_file", "fields", "queries", "query_ids"),
    *("min_label", "negatives_per_group", "depth", "skip_top", "judged_negatives"),
}
"""Options that the short help of `harp finetune` shows."""


@dataclass
class FinetuneDataArguments(PairArguments):
    """What the model learns from which judgments, and how negatives are drawn."""

    dataset: str | None = field(
        default=None,
        metadata={"help": "Id in ir_datasets of documents, queries and qrels, such as vaswani."},
    )
    negatives_run: str | None = field(
        default=None,
        metadata={
            "help": "TREC run (.gz too) of the dataset's queries, from which hard negatives are "
            "drawn. Default: the scoreddocs of the dataset.",
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
    passages: str = field(
        default="first",
        metadata={
            "help": "What is read of a long document: its beginning (first), or its first words "
            "and the passage that shares most words with the query (matching).",
            "choices": ["first", "matching"],
        },
    )
    min_label: int = field(default=1, metadata={"help": "Lowest label of a relevant document."})
    negatives_per_group: int = field(
        default=7,
        metadata={
            "help": "How many hard negatives a group has at most.",
        },
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
        },
    )
    losses: dict[str, Any] | str | None = field(
        default=None,
        metadata={
            "help": losses_help(
                '{"lce": {"temperature": 2}}', default='{"lce": 1}; the paper uses {"bce": 1}'
            )
        },
    )
    max_length: int = max_length_option()
    max_query_length: int | None = field(default=None, metadata={"help": max_query_length_help()})
    mlm_probability: float = mlm_probability_option()

    def __post_init__(self) -> None:
        self.losses = read_weights("losses", self.losses, {"lce": 1.0})
        if self.dataset is not None:
            self.dataset = self.dataset.removeprefix("irds:")

    def check(self) -> None:
        """Check the options without opening the data.

        Raises:
            HarpError: there are two sources or none, an option does not fit the source or the
                losses, a number makes no sense, or `weighted_sum` or `query_limits` raises the
                error.
        """
        check_limits(self, _LIMITS)
        distilling = self.weighted_sum().reading("teacher_scores")
        _ = self.query_limits
        if bool(self.dataset) == bool(self.train_file):
            raise HarpError("name either a dataset or a train_file to learn from")
        if self.train_file:
            defaults = {option.name: option.default for option in fields(self)}
            for name in _DATASET_OPTIONS:
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
        """The weight of the only task."""
        return {TASK: 1.0}

    def groups(self, seed: int, left_out: Collection[str] = ()) -> JudgedGroups:
        """Open the data, without the queries of the dataset whose ids are left out.

        Raises:
            HarpError: a file is missing, or `DatasetQueries` or `JsonLinesQueries` raises the
                error.
        """
        for name in ("negatives_run", "teacher_run", "query_ids"):
            if (path := getattr(self, name)) is not None and not Path(path).is_file():
                raise HarpError(f"{name} {path}: there is no such file")
        source: DatasetQueries | JsonLinesQueries
        if self.train_file:
            source = JsonLinesQueries(
                self.train_file,
                fields=self.fields or ("title", "text"),
                teacher=bool(self.weighted_sum().reading("teacher_scores")),
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
            source,
            negatives_per_group=self.negatives_per_group,
            seed=seed,
            redraw_each_epoch=self.redraw_each_epoch,
            passages=self.passages,
        )


FINETUNING = (HarpModelArguments, FinetuneDataArguments, HarpTrainingArguments)
"""The options of `harp finetune`."""
