"""Sequence classification of packed texts, by the model's own head."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPooling

from ...errors import HarpError
from .attention import Packing
from .encoder import PACKED, can_pack, encode, prepare


class Packed(NamedTuple):
    """What a pass over packed texts gives.

    Attributes:
        logits: of each text, of shape (texts, labels).
        hidden: last hidden states at the places asked for, of shape (places, width), or None.
    """

    logits: Tensor
    hidden: Tensor | None


class PackedClassifier:
    """Runs a model for sequence classification over texts without padding.

    The weights stay the model's: what trains, moves or saves it goes on as before, and it still
    takes padded inputs. Dropout, gradients and gradient checkpointing are the model's own.

    Args:
        model: a BERT-like model for sequence classification, with any attention implementation;
            it is switched to packed attention, not loaded anew.

    Raises:
        HarpError: its architecture is none of `PACKED`.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        if not can_pack(model.config):
            kinds = ", ".join(sorted(PACKED))
            raise HarpError(
                f"{model.config.model_type} cannot be packed: pad its inputs, or choose of {kinds}"
            )
        prepare(model)
        self.model = model

    @torch.compiler.disable(recursive=False)
    def __call__(
        self,
        ids: Tensor,
        lengths: np.ndarray | Sequence[int] | Tensor,
        token_types: Tensor | None = None,
        places: Tensor | None = None,
    ) -> Packed:
        """Classify texts.

        Args:
            ids: tokens of the texts, special ones included, one text after the other in any order,
                of shape (tokens,); moved to the model's device.
            lengths: tokens of each text, at least 1, on the CPU, of shape (texts,).
            token_types: of shape (tokens,); not used by a model that has none.
            places: tokens whose last hidden states are wanted, as indices into ``ids``.

        Raises:
            ValueError: the lengths do not add up to the tokens, or there is an empty text.
        """
        sizes = np.asarray(lengths, dtype=np.int64)
        if not len(sizes) or sizes.min() < 1 or sizes.sum() != len(ids):
            raise ValueError(
                f"{len(sizes)} texts of {sizes.sum()} tokens, but {len(ids)} are given"
            )
        device = self.model.device
        order = np.argsort(sizes, kind="stable")
        rank = torch.from_numpy(np.argsort(order)).to(device)
        packing = Packing.of(sizes[order], device)
        first = torch.from_numpy((np.cumsum(sizes) - sizes)[order]).to(device)
        source = first[packing.text] + packing.positions
        types = None if token_types is None else token_types.to(device)[source]
        states = self._states(packing, ids.to(device)[source], types)
        logits = self._head(packing, states)[rank]
        if places is None:
            return Packed(logits, None)
        moved = torch.empty_like(source).scatter_(0, source, torch.arange(len(ids), device=device))
        return Packed(logits, states[moved[places.to(device)]])

    def _states(self, packing: Packing, ids: Tensor, token_types: Tensor | None) -> Tensor:
        """Last hidden states."""
        return encode(self._encoder, packing, ids, token_types)

    @property
    def _encoder(self) -> PreTrainedModel:
        return getattr(self.model, self.model.base_model_prefix)

    @torch.compiler.disable
    def _head(self, packing: Packing, states: Tensor) -> Tensor:
        """The model's own code after its encoder, given texts of one token each."""
        if getattr(self.model.config, "classifier_pooling", "cls") == "mean":
            sizes = torch.from_numpy(packing.lengths).to(states.device)
            mean = torch.segment_reduce(states.float(), "mean", lengths=sizes, axis=0)
            pooled = mean.to(states.dtype)
        else:
            pooled = states[packing.bounds[:-1].long()]
        return without_encoder(self.model)(inputs_embeds=pooled[:, None]).logits


class GivenHiddenStates(nn.Module):
    """Stands where a model has its encoder; hands on hidden states that it is given.

    Args:
        pooler: the encoder's, for a head that reads what it gives.
    """

    def __init__(self, pooler: nn.Module | None = None) -> None:
        super().__init__()
        self.pooler = pooler

    def forward(
        self, *_: object, inputs_embeds: Tensor, **__: object
    ) -> BaseModelOutputWithPooling:
        pooled = None if self.pooler is None else self.pooler(inputs_embeds)
        return BaseModelOutputWithPooling(last_hidden_state=inputs_embeds, pooler_output=pooled)


def without_encoder(model: PreTrainedModel) -> PreTrainedModel:
    """The same model, weights shared, with `GivenHiddenStates` for its encoder."""
    head = copy(model)
    given = GivenHiddenStates(getattr(model.base_model, "pooler", None))
    head._modules = {**model._modules, model.base_model_prefix: given}
    return head
