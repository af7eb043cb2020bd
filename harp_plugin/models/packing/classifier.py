"""Classify packed texts by the model's own classification head."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPooling

from ..devices import to_device
from .attention import Packing
from .encoder import BERT_LIKE, PackedOrder, encode, prepare

__all__ = [
    "PackedClassifier",
    "PackedOutput",
    "PassThroughEncoder",
    "outside_autocast",
    "with_exact_head",
    "without_encoder",
]


class PackedOutput(NamedTuple):
    """The output of a forward pass over packed texts.

    Attributes:
        logits: logits of each text, (texts, labels).
        hidden: last hidden states at the requested positions, (positions, width), or None.
    """

    logits: Tensor
    hidden: Tensor | None


class PackedClassifier:
    """Runs a model for sequence classification over texts without padding.

    It uses the weights of the model itself, so the model can still be trained, moved and saved as
    before, and it still takes padded inputs. Dropout, gradients and gradient checkpointing are the
    model's own. If the layers are those of BERT, the last one computes what follows its attention
    for first tokens and requested positions only, since nothing reads the others, unless FSDP2
    shards the model.

    Args:
        model: a BERT-like model for sequence classification, with any attention implementation.
            It is switched to packed attention; it is not loaded again.

    Raises:
        HarpError: its architecture is not in `PACKED`.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        prepare(model)
        self.model = model

    def __call__(
        self,
        ids: Tensor,
        lengths: np.ndarray | Sequence[int] | Tensor,
        token_types: Tensor | None = None,
        positions: Tensor | None = None,
    ) -> PackedOutput:
        """Classify texts.

        Args:
            ids: token ids of the texts, special tokens included, one text after the other in any
                order, (tokens,); they are moved to the model's device.
            lengths: number of tokens of each text, at least 1, on the CPU, (texts,).
            token_types: type of each token, (tokens,); a model without token types ignores them.
            positions: indices into ``ids`` of the tokens whose last hidden states are returned,
                (positions,); None returns no hidden states.

        Raises:
            ValueError: the lengths do not add up to the tokens, or there is an empty text.
        """
        device = self.model.device
        order = PackedOrder.from_lengths(ids, lengths, device)
        packing, source = order.packing, order.source
        types = None if token_types is None else to_device(token_types, device)[source]
        ids = to_device(ids, device)[source]
        if positions is not None:
            positions = order.moved[to_device(positions, device)]
        states, hidden = self._states(packing, ids, types, positions)
        logits = self._head(self._pooled(packing, states)[:, None])
        return PackedOutput(logits[order.rank], hidden)

    def _states(
        self, packing: Packing, ids: Tensor, token_types: Tensor | None, positions: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """Return the last hidden states of first tokens or of all tokens, and at the positions.

        They are those of first tokens, (texts, width), if the layers are those of BERT, else of
        all tokens, (tokens, width).
        """
        if not self._is_bert_like or _is_sharded(self._encoder):
            states = encode(self._encoder, packing, ids, token_types)
            hidden = None if positions is None else states[positions]
            return states[packing.bounds[:-1].long()] if self._is_bert_like else states, hidden
        before, last = _without_last_layer(self._encoder)
        states = encode(before, packing, ids, token_types)
        rows = packing.bounds[:-1].long()
        if positions is not None:
            rows = torch.cat([rows, positions])
        attended = self._attended(last.attention.self, packing, states, rows)
        attended = last.attention.output(attended[None], states[rows][None])
        output = last.output(last.intermediate(attended), attended)[0]
        texts = len(packing.lengths)
        return output[:texts], None if positions is None else output[texts:]

    def _attended(self, attention: Any, packing: Packing, states: Tensor, rows: Tensor) -> Tensor:
        """Return the output of BERT's self-attention for some tokens, (rows, width)."""
        attended, _ = attention(states[None], harp_packing=packing)
        return attended[0, rows]

    @property
    def _is_bert_like(self) -> bool:
        return self.model.config.model_type in BERT_LIKE

    @property
    def _encoder(self) -> PreTrainedModel:
        return getattr(self.model, self.model.base_model_prefix)

    def _pooled(self, packing: Packing, states: Tensor) -> Tensor:
        """Return what the model's own head reads of each text, (texts, width)."""
        if self._is_bert_like:
            return states
        if getattr(self.model.config, "classifier_pooling", "cls") == "mean":
            sizes = to_device(packing.lengths, states.device)
            return torch.segment_reduce(states.float(), "mean", lengths=sizes, axis=0, unsafe=True)
        return states[packing.bounds[:-1].long()]

    def _head(self, pooled: Tensor) -> Tensor:
        """Return the logits of the model's own head, of texts of one token, (texts, 1, width).

        Autocast has no effect on them.
        """
        return outside_autocast(without_encoder(self.model), inputs_embeds=pooled).logits


def _is_sharded(encoder: nn.Module) -> bool:
    """Return whether FSDP2 gathers weights of an encoder when the part that has them is called."""
    return any(hasattr(part, "unshard") for part in encoder.modules())


def _without_last_layer(base: Any) -> tuple[Any, Any]:
    """Return a BERT with the same weights, but without last layer and pooler, and that layer."""
    encoder = copy(base.encoder)
    encoder._modules = {**base.encoder._modules, "layer": base.encoder.layer[:-1]}
    shorter = copy(base)
    shorter._modules = {**base._modules, "encoder": encoder, "pooler": None}
    return shorter, base.encoder.layer[-1]


@dataclass
class _States(BaseModelOutputWithPooling):
    """What heads read of an encoder; Longformer's also reads attention, which it need not have."""

    global_attentions: tuple[Tensor, ...] | None = None


class PassThroughEncoder(nn.Module):
    """Takes the place of a model's encoder, and returns the hidden states that it receives.

    Args:
        pooler: the encoder's pooler, for a head that reads the pooler's output.
    """

    def __init__(self, pooler: nn.Module | None = None) -> None:
        super().__init__()
        self.pooler = pooler

    def forward(
        self, *_: object, inputs_embeds: Tensor, **__: object
    ) -> BaseModelOutputWithPooling:
        """Return ``inputs_embeds`` as the last hidden states."""
        pooled = None if self.pooler is None else self.pooler(inputs_embeds)
        return _States(last_hidden_state=inputs_embeds, pooler_output=pooled)


def without_encoder(model: PreTrainedModel) -> PreTrainedModel:
    """Return a model with the same weights, whose encoder is a `PassThroughEncoder`."""
    head = copy(model)
    encoder = PassThroughEncoder(getattr(model.base_model, "pooler", None))
    head._modules = {**model._modules, model.base_model_prefix: encoder}
    return head


def outside_autocast(module: nn.Module, *args: Any, **options: Any) -> Any:
    """Apply a module without autocast, to inputs in the type of its weights.

    Training keeps weights in fp32, so its logits are fp32 products, whatever autocast says. A bf16
    logit has 8 bits: two scores near 100 that differ by less than 0.25 are equal in it.

    Args:
        module: it takes tensors of floats that have another type elsewhere.
        args: its arguments.
        options: its arguments by name.
    """
    weights = (weight.dtype for weight in module.parameters() if weight.is_floating_point())
    dtype = next(weights, torch.float32)

    def cast(value: Any) -> Any:
        is_float = isinstance(value, Tensor) and value.is_floating_point()
        return value.to(dtype) if is_float else value

    tensors = [value for value in (*args, *options.values()) if isinstance(value, Tensor)]
    with torch.autocast(tensors[0].device.type, enabled=False):
        return module(*map(cast, args), **{name: cast(value) for name, value in options.items()})


class _Exact(nn.Module):
    """A module that is always applied by `outside_autocast`."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **options: Any) -> Any:
        return outside_autocast(self.module, *args, **options)


def with_exact_head(model: PreTrainedModel) -> PreTrainedModel:
    """Return a model with the same weights, whose parts behind the encoder ignore autocast.

    These are the parts of the model next to its base, and the pooler of the base.
    """
    base, result = copy(model.base_model), copy(model)
    if pooler := base._modules.get("pooler"):
        base._modules = {**base._modules, "pooler": _Exact(pooler)}
    parts = {name: part and _Exact(part) for name, part in model._modules.items()}
    result._modules = {**parts, model.base_model_prefix: base}
    return result
