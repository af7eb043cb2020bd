"""What training asks of a model, whatever its kind: a cross-encoder, or another file beside it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from .masking import TokenMasker

__all__ = [
    "Batch",
    "BatchSize",
    "LossInputs",
    "ModelDescription",
    "PairBatches",
    "TrainableModel",
    "Work",
    "in_groups",
    "laid_out",
]

Batch = dict[str, Any]
"""Tensors, and arrays that stay on the CPU, by name."""


@dataclass(frozen=True, slots=True)
class LossInputs:
    """What a model gives to losses. A loss takes the fields that its parameters name.

    A model of another kind may give further fields: add them here, None where a model has none.

    Attributes:
        scores: relevance scores, fp32, (groups, members); the positive stands in column 0.
        mask: where a group has a member, bool, (groups, members).
        mlm_logits: predictions at the masked tokens, fp32, (masked, vocabulary), or None.
        mlm_labels: true ids of the masked tokens, int64, (masked,), or None.
        teacher_scores: scores to learn from, fp32, (groups, members), or None.
    """

    scores: Tensor
    mask: Tensor
    mlm_logits: Tensor | None = None
    mlm_labels: Tensor | None = None
    teacher_scores: Tensor | None = None


class BatchSize(NamedTuple):
    """How much a batch holds.

    Attributes:
        tokens: real tokens, without padding.
        squares: sum over texts of the square of their tokens.
        pairs: number of pairs.
        masked: number of masked tokens.
    """

    tokens: int
    squares: int
    pairs: int
    masked: int


class Work(Protocol):
    """What a training step computes."""

    def flops(self, size: BatchSize) -> float:
        """Return the floating-point operations of a step over a batch of this size."""


class PairBatches(Protocol):
    """Makes the part of a batch that the model itself reads."""

    def __call__(
        self,
        pairs: Sequence[tuple[str, str]],
        query_limits: Sequence[int | None],
        mask_keys: Sequence[tuple[int, ...]] | None,
    ) -> Batch:
        """Turn texts into model inputs.

        Args:
            pairs: query and document of each pair.
            query_limits: the most tokens of each query; None for no limit but the pair's.
            mask_keys: what the masks of each pair are drawn by; None draws them by its tokens.

        Returns:
            The model's inputs by name; where tokens are masked also ``mlm_labels``, the ids that
            were there, and ``masked_pairs``, the pair of each, both (masked,).
        """


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """What the model card says of every model of a kind.

    Attributes:
        name: what such a model is called in errors, such as ``cross-encoder``.
        tags: tags of its card on the hub.
        pipeline_tag: the hub's name for what a trained model does.
        template: file of the card's text in the folder ``data`` of the package.
        pretrained_title: title of a model that was pre-trained on hyperlinks.
        finetuned_title: title of a model that was trained on judged queries.
    """

    name: str
    tags: tuple[str, ...]
    pipeline_tag: str
    template: str
    pretrained_title: str
    finetuned_title: str


class TrainableModel(Protocol):
    """A `torch.nn.Module` that `harp_plugin.training` can train.

    A kind of model is one file that has such a class: it owns how its batches are made, what it
    gives to losses, how it is saved, what it costs and what its card says. The trainer, losses,
    meters, cards and validation know this protocol only.

    Attributes:
        description: for the model card.
        inputs: names of the batch's entries that `forward` takes.
        is_packed: whether pairs lie one behind the other in a pass, without padding.
        new_weights: names of the weights that were drawn because the checkpoint lacks them.
    """

    description: ClassVar[ModelDescription]
    inputs: ClassVar[tuple[str, ...]]
    is_packed: bool
    new_weights: tuple[str, ...]

    @property
    def max_length(self) -> int | None:
        """Most tokens that the model reads, None where it sets no limit."""

    def batches(
        self,
        tokenizer: PreTrainedTokenizerBase,
        *,
        max_length: int,
        masker: TokenMasker | None = None,
    ) -> PairBatches:
        """Return what makes this model's part of a batch.

        Args:
            tokenizer: a fast tokenizer.
            max_length: most tokens of a pair, special tokens included.
            masker: draws the masks of the documents' tokens; None masks nothing.
        """

    def size_of(self, batch: Mapping[str, Any]) -> BatchSize:
        """Return how much a batch holds."""

    def loss_inputs(self, output: Any, batch: Mapping[str, Any]) -> LossInputs:
        """Return what losses read: from what `forward` gave, and from the batch.

        The batch has ``group_sizes``, the members of each group, (groups,), beside what `batches`
        made, and where the data have them ``teacher_scores``, (pairs,).
        """

    def work(self) -> Work:
        """Return what a step computes; asked before processes shard the model."""

    def untrained(self, *, scored: bool, masked: bool) -> tuple[str, ...]:
        """Return names of new weights that stay as they were drawn.

        Args:
            scored: whether a loss reads relevance scores.
            masked: whether a loss reads predictions at masked tokens.
        """

    def save(
        self,
        folder: str | Path,
        state_dict: dict[str, Tensor] | None = None,
        leave_out: Collection[str] = (),
    ) -> None:
        """Write a plain Hugging Face checkpoint.

        Args:
            folder: where to write.
            state_dict: this model's gathered weights, where the model itself is sharded.
            leave_out: names of weights that are not written.
        """

    def load_weights(self, folder: str | Path, left_out: Collection[str] = ()) -> None:
        """Read the weights of a checkpoint that `save` wrote for a model of the same shape."""

    def ranking_model(self, weights: Mapping[str, Tensor] | None = None) -> PreTrainedModel:
        """Return the part that ranks.

        Args:
            weights: gathered weights, where the model itself is sharded: the part is a copy then.
        """


def in_groups(scores: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    """Lay the scores of adjacent members out by group.

    Args:
        scores: (pairs,).
        sizes: members of each group, (groups,).

    Returns:
        Scores and where a group has a member, both (groups, members); elsewhere scores are 0.
    """
    members = torch.arange(int(sizes.max()), device=sizes.device)
    mask = members < sizes[:, None]
    return laid_out(scores, mask), mask


def laid_out(values: Tensor, mask: Tensor) -> Tensor:
    """Put the values of adjacent members, (pairs,), where the mask says; elsewhere stands 0."""
    return values.new_zeros(mask.shape).masked_scatter(mask, values)
