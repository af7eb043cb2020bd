"""Ranking quality while a model trains: what is measured, and when; training is not disturbed.

`harp_plugin.evaluation.validation` measures: training takes any object that follows the protocol
`Validation`.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from accelerate.utils import broadcast_object_list
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..errors import HarpError
from ..limits import COUNT, check_limits
from ..models.trainable import TrainableModel

__all__ = ["Validation", "ValidationOptions", "measure_on_first_process", "unmoved"]

LIMITS = dict.fromkeys(
    ("validation_depth", "validation_queries", "validation_groups", "early_stopping_patience"),
    COUNT,
)


class Validation(Protocol):
    """Measures a reranker that is in memory."""

    @property
    def dataset(self) -> str:
        """ir_datasets id of the queries."""

    @property
    def queries(self) -> Collection[str]:
        """Their ids."""

    @property
    def measures(self) -> Collection[str]:
        """Names of what is measured."""

    def __call__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
    ) -> dict[str, float]:
        """The value of each measure for a sequence-classification model in evaluation mode."""


@dataclass
class ValidationOptions:
    """What is measured while a model trains; transformers' ``eval_strategy`` says when."""

    validation_dataset: str | None = field(
        default=None,
        metadata={
            "help": "ir_datasets id of a dataset whose queries are reranked during training, such"
            " as vaswani; --eval-strategy, --eval-steps and --eval-on-start say when."
        },
    )
    validation_run: str | None = field(
        default=None,
        metadata={
            "help": "TREC run (.gz too) that is reranked. Default: the dataset's scoreddocs, else "
            "BM25."
        },
    )
    validation_depth: int = field(
        default=20, metadata={"help": "How many results of each query are reranked."}
    )
    validation_queries: int = field(
        default=50,
        metadata={
            "help": "How many judged queries of the dataset are ranked. They are drawn by the seed."
        },
    )
    validation_query_ids: str | None = field(
        default=None,
        metadata={
            "help": "File of the ids of the queries that may be drawn, with one id on each line."
        },
    )
    validation_held_out: bool = field(
        default=True,
        metadata={
            "help": "Do not learn from these queries where fine-tuning has the same dataset."
        },
    )
    validation_fields: list[str] | None = field(
        default=None,
        metadata={"help": "Document fields, joined by a space. Default: the dataset's choice."},
    )
    validation_measures: list[str] = field(
        default_factory=lambda: ["nDCG@10", "RR@10"],
        metadata={"help": "Measures as ir_measures writes them."},
    )
    validation_build_dir: str | None = field(
        default=None,
        metadata={
            "help": "Folder that `harp build` wrote of other pages. In pre-training, the losses "
            "and accuracies of its pairs are measured."
        },
    )
    validation_groups: int = field(
        default=1000,
        metadata={"help": "How many groups of pairs of --validation-build-dir are measured."},
    )
    early_stopping_patience: int | None = field(
        default=None,
        metadata={
            "help": "Training stops after this number of evaluations without a new best value."
        },
    )

    def check_validation(self, *, evaluates: bool, chooses: bool, metric: str | None) -> None:
        """Find options that do not fit together.

        Args:
            evaluates: whether ``eval_strategy`` is on.
            chooses: whether a best checkpoint is looked for.
            metric: what is best, with or without ``eval_``; None where it was left to us.

        Raises:
            HarpError: an evaluation has nothing to evaluate or never takes place, the metric is not
                measured, or a number has no sense.
        """
        sources = [self.validation_dataset, self.validation_build_dir]
        if evaluates and not any(sources):
            raise HarpError(
                "eval_strategy is on and there is nothing to evaluate: name a validation_dataset"
            )
        for name in ("validation_dataset", "validation_build_dir", "early_stopping_patience"):
            if getattr(self, name) is not None and not evaluates:
                raise HarpError(f"{name} has no effect: set eval_strategy to steps or epoch")
        if chooses and not evaluates:
            raise HarpError(
                "a best checkpoint is asked for and nothing is evaluated: set eval_strategy to "
                "steps or epoch"
            )
        check_limits(self, LIMITS)
        if self.validation_dataset and not self.validation_measures:
            raise HarpError("validation_measures is empty: name one, such as nDCG@10")
        known = self.validation_measures
        if chooses and metric and not self.validation_build_dir and metric not in known:
            raise HarpError(
                f"metric_for_best_model is {metric}, which is not measured: choose one of "
                f"{', '.join(known)}"
            )

    @property
    def metric(self) -> str:
        """What a best checkpoint is best in, where nothing else is said."""
        return self.validation_measures[0] if self.validation_dataset else "loss"


def measure_on_first_process(
    validation: Validation,
    model: TrainableModel,
    tokenizer: PreTrainedTokenizerBase,
    *,
    weights: Mapping[str, Tensor] | None,
    device: torch.device,
    process: int,
) -> dict[str, float]:
    """Measure on the first process and hand the values to the others; training is not disturbed.

    Args:
        validation: measures.
        model: in training.
        tokenizer: its own.
        weights: the model's gathered weights, where processes shard it.
        device: where the model is.
        process: number of this process.
    """
    values: list[dict[str, float] | None] = [None]
    if process == 0:
        with unmoved(model.ranking_model()):
            ranking_model = model.ranking_model(weights)
            ranking_model.to(device)  # type: ignore[arg-type]
            values = [validation(ranking_model.eval(), tokenizer)]
    broadcast_object_list(values)
    assert values[0] is not None
    return values[0]


@contextmanager
def unmoved(model: torch.nn.Module) -> Iterator[None]:
    """Give back each module's mode and every state from which training draws."""
    modes = {module: module.training for module in model.modules()}
    of_python, of_numpy = random.getstate(), np.random.get_state()
    try:
        devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
        with torch.random.fork_rng(devices):
            yield
    finally:
        random.setstate(of_python)
        np.random.set_state(of_numpy)
        for module, mode in modes.items():
            module.training = mode
