"""The protocol of a model that can be trained, whatever its kind."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from .loading import longest_input
from .masking import TokenMasker
from .packing import can_pack
from .pooling import pad_to_mask
from .sentence_encoder import SentenceEncoderFiles

__all__ = [
    "Batch",
    "GroupKeys",
    "LossInputs",
    "ModelDescription",
    "PairBatches",
    "TrainableBase",
    "TrainableModel",
    "group_scores",
]

Batch = dict[str, Any]
"""Tensors by name, and NumPy arrays, which stay on the CPU."""


@dataclass(frozen=True, slots=True)
class GroupKeys:
    """Numbers that tell which queries and documents of a batch are the same.

    All are arrays of int64 that stay on the CPU.

    Attributes:
        queries: a number of each group's query, (groups,).
        documents: a number of the text of each pair's document, and one of the page or the judged
            document that it is from, (pairs, 2).
        relevant: what is no negative of a group's query: the group's place in the batch and a
            number as in ``documents``, (any, 2).
    """

    queries: np.ndarray
    documents: np.ndarray
    relevant: np.ndarray


@dataclass(frozen=True, slots=True)
class LossInputs:
    """The values of a model that losses read. A loss takes the fields that its parameters name.

    A model of another kind may have further values: add a field here, whose default is None.

    Attributes:
        scores: relevance scores, fp32, (groups, members); the positive is in column 0.
        mask: True where a group has a member, bool, (groups, members).
        mlm_logits: predictions at the masked tokens, fp32, (masked, vocabulary), or None.
        mlm_labels: true ids of the masked tokens, int64, (masked,), or None.
        teacher_scores: scores of a teacher, fp32, (groups, members), or None.
        batch_scores: scores of a group's own pairs, and of its query with the documents of the
            whole batch, fp32, (groups, members + documents), or None.
        batch_mask: True for the group's own pairs and for the documents that are negatives of it,
            bool, (groups, members + documents), or None.
    """

    scores: Tensor
    mask: Tensor
    mlm_logits: Tensor | None = None
    mlm_labels: Tensor | None = None
    teacher_scores: Tensor | None = None
    batch_scores: Tensor | None = None
    batch_mask: Tensor | None = None


class PairBatches(Protocol):
    """Makes the part of a batch that the model reads."""

    def __call__(
        self,
        pairs: Sequence[tuple[str, str]],
        query_limits: Sequence[int | None],
        mask_keys: Sequence[tuple[int, ...]] | None,
    ) -> Batch:
        """Turn texts into model inputs.

        Args:
            pairs: query and document of each pair.
            query_limits: most tokens of each query; None sets no limit except the pair's.
            mask_keys: numbers that the masks of each pair depend on; None lets them depend on the
                pair's tokens.

        Returns:
            The model's inputs by name. If tokens are masked, also ``mlm_labels``, their ids before
            masking, and ``masked_pairs``, the pair of each masked token, both (masked,).
        """


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """What the model card says about every model of one kind.

    Attributes:
        tags: tags of the card on the hub.
        pipeline_tag: the hub's name for the task that a trained model does.
        template: file name of the card's text in the folder ``data`` of the package.
        pretrained_title: title of a model that was pre-trained on hyperlinks.
        finetuned_title: title of a model that was trained on judged queries.
    """

    tags: tuple[str, ...]
    pipeline_tag: str
    template: str
    pretrained_title: str
    finetuned_title: str


class TrainableModel(Protocol):
    """A `torch.nn.Module` that `harp_plugin.training` can train.

    Each kind of model is one class in one file. The class decides how its batches are made, which
    values its losses read, how it is saved and what its card says. The trainer, losses, meters,
    cards and validation use this protocol only.

    Attributes:
        description: what the model card says about this kind of model.
        options: names of the options of a recipe that this kind of model takes.
        cannot: fields of `LossInputs` that this kind of model does not have, each with the reason
            and what a recipe should do instead.
        inputs: names of the entries of a batch that `forward` takes.
        is_packed: whether pairs follow each other in a forward pass, without padding.
        new_weights: names of the weights that were drawn at random because the checkpoint lacks
            them.
    """

    description: ClassVar[ModelDescription]
    options: ClassVar[tuple[str, ...]]
    cannot: ClassVar[Mapping[str, str]]
    inputs: ClassVar[tuple[str, ...]]
    is_packed: bool
    new_weights: tuple[str, ...]

    @property
    def max_length(self) -> int | None:
        """The most tokens that the model reads; None if it sets no limit."""

    @property
    def files(self) -> SentenceEncoderFiles | None:
        """How an encoder makes vectors of texts; None for a model that reads pairs."""

    def batches(
        self,
        tokenizer: PreTrainedTokenizerBase,
        *,
        max_length: int,
        masker: TokenMasker | None = None,
    ) -> PairBatches:
        """Return an object that makes this model's part of a batch.

        Args:
            tokenizer: a fast tokenizer.
            max_length: most tokens of a pair, special tokens included.
            masker: draws the masks of the documents' tokens; None masks nothing.
        """

    def loss_inputs(self, output: Any, batch: Mapping[str, Any]) -> LossInputs:
        """Return the values that losses read, from the output of `forward` and from the batch.

        Besides what `batches` made, the batch has ``group_sizes``, the number of members of each
        group, (groups,); ``keys``, a `GroupKeys`; and, if the data have them, ``teacher_scores``,
        (pairs,).
        """

    def untrained(self, *, scored: bool, masked: bool) -> tuple[str, ...]:
        """Return the names of the new weights that no loss trains.

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
            state_dict: the gathered weights of this model, if processes shard it.
            leave_out: names of weights that are not written.
        """

    def load_weights(self, folder: str | Path, left_out: Collection[str] = ()) -> None:
        """Read the weights of a checkpoint that `save` wrote for a model of the same shape.

        Args:
            folder: the checkpoint.
            left_out: names of the weights that `save` left out; they stay as they are.
        """

    def ranking_model(self, weights: Mapping[str, Tensor] | None = None) -> PreTrainedModel:
        """Return the part of the model that ranks.

        Args:
            weights: the gathered weights, if processes shard the model; the part is then a copy.
        """


class TrainableBase(nn.Module):
    """What models of all kinds have in common.

    Args:
        new_weights: names of the weights that were drawn at random because the checkpoint lacks
            them.

    Attributes:
        is_packed: whether texts follow each other in a forward pass, without padding. At first it
            is True if the architecture allows it (see `harp_plugin.models.packing.PACKED`).
    """

    main_input_name = "input_ids"

    def __init__(self, ranking: PreTrainedModel, new_weights: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.new_weights = new_weights
        self.is_packed = can_pack(ranking.config)

    def ranking_model(self, weights: Mapping[str, Tensor] | None = None) -> PreTrainedModel:
        """Return the model of transformers that ranks (see `TrainableModel`)."""
        raise NotImplementedError

    @property
    def config(self):
        """The configuration of the model that ranks, as it is saved."""
        return self.ranking_model().config

    @property
    def max_length(self) -> int | None:
        """The most tokens that the model reads; None if it sets no limit."""
        return longest_input(self.ranking_model())

    def activation_checkpointing_enable(self, **options: Any) -> None:
        """Recompute activations in the backward pass, as transformers' models do."""
        self.ranking_model().activation_checkpointing_enable(**options)

    def gradient_checkpointing_enable(self, **options: Any) -> None:
        """Do the same as `activation_checkpointing_enable`, under its older name."""
        self.ranking_model().gradient_checkpointing_enable(**options)


def group_scores(scores: Tensor, batch: Mapping[str, Any]) -> LossInputs:
    """Arrange the scores of adjacent members in one row for each group, and a teacher's as well.

    Args:
        scores: (pairs,).
        batch: with ``group_sizes`` and, if the data have them, ``teacher_scores``.
    """
    sizes = batch["group_sizes"]
    mask = torch.arange(int(sizes.max()), device=sizes.device) < sizes[:, None]
    teacher = batch.get("teacher_scores")
    return LossInputs(
        pad_to_mask(scores, mask),
        mask,
        teacher_scores=None if teacher is None else pad_to_mask(teacher, mask),
    )
