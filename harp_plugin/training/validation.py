"""Measure the ranking while a model trains, without an effect on the training.

Training takes any object that follows the protocol `Validation`, such as the one in
`harp_plugin.evaluation.validation`.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from accelerate import PartialState
from accelerate.utils import broadcast_object_list
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..models.sentence_encoder import SentenceEncoderFiles
from ..models.trainable import TrainableModel
from ..options import Count, Options, option

__all__ = ["Validation", "ValidationOptions", "measure_on_first_process", "restored_state"]


class Validation(Protocol):
    """Measures the ranking of a model in memory."""

    @property
    def dataset(self) -> str:
        """The id in ir_datasets of the queries."""

    @property
    def queries(self) -> Collection[str]:
        """The ids of the queries."""

    def __call__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        files: SentenceEncoderFiles | None,
    ) -> dict[str, float]:
        """Return each measure for a model in evaluation mode.

        Args:
            model: an encoder, or a model for sequence classification.
            tokenizer: its tokenizer.
            files: how an encoder makes vectors of texts; None for a model that reads pairs.
        """


@dataclass(kw_only=True)
class ValidationOptions(Options):
    """What is measured while a model trains; transformers' ``eval_strategy`` says when.

    Attributes:
        validation_dataset: ir_datasets id of a dataset whose queries are reranked during training,
            such as vaswani; --eval-strategy, --eval-steps and --eval-on-start say when.
        validation_run: TREC run (.gz too) that is reranked. Default: the scoreddocs of the dataset,
            or BM25 if it has none.
        validation_depth: Number of results of each query that are reranked.
        validation_queries: How many judged queries of the dataset are ranked. They are drawn by the
            seed.
        validation_query_ids: File of the ids of the queries that may be drawn, with one id on each
            line.
        validation_held_out: Do not learn from these queries where fine-tuning has the same dataset.
        validation_fields: Document fields, joined by a space. Default: the text that the dataset
            recommends.
        validation_measures: Measures as ir_measures writes them.
        validation_build_dir: Folder that `harp build` wrote of other pages. In pre-training, the
            losses and accuracies of its pairs are measured.
        validation_groups: How many groups of pairs of --validation-build-dir are measured.
        early_stopping_patience: Training stops after this number of evaluations without a new best
            value.
    """

    validation_dataset: str | None = None
    validation_run: str | None = None
    validation_depth: Count = 20
    validation_queries: Count = 50
    validation_query_ids: str | None = None
    validation_held_out: bool = True
    validation_fields: list[str] | None = None
    validation_measures: list[str] = option(["nDCG@10", "RR@10"])
    validation_build_dir: str | None = None
    validation_groups: Count = 1000
    early_stopping_patience: Count | None = None


def measure_on_first_process(
    validation: Validation,
    model: TrainableModel,
    tokenizer: PreTrainedTokenizerBase,
    weights: Mapping[str, Tensor] | None = None,
) -> dict[str, float]:
    """Measure the ranking on the first process, without an effect on the training.

    Args:
        validation: measures the ranking.
        model: the model in training.
        tokenizer: the tokenizer of the model.
        weights: the gathered weights of the model, if processes shard it.

    Returns:
        Each measure, on every process.
    """
    values: list[dict[str, float] | None] = [None]
    state = PartialState()
    if state.is_main_process:
        with restored_state(model.ranking_model()):
            ranking_model = model.ranking_model(weights)
            ranking_model.to(state.device).eval()
            values = [validation(ranking_model, tokenizer, model.files)]
    broadcast_object_list(values)
    assert values[0] is not None
    return values[0]


@contextmanager
def restored_state(model: torch.nn.Module) -> Iterator[None]:
    """Restore after the block the mode of each module and the states of all random generators."""
    modes = {module: module.training for module in model.modules()}
    python_state, numpy_state = random.getstate(), np.random.get_state()
    try:
        devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
        with torch.random.fork_rng(devices):
            yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)
        for module, mode in modes.items():
            module.training = mode
