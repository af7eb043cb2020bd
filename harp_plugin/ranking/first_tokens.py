"""Classify packed texts by their first tokens, without what the head does not read."""

from __future__ import annotations

from copy import copy, deepcopy
from typing import Any

from torch import Tensor
from transformers import PreTrainedModel

from ..models.packing import PackedClassifier, Packing, encode
from ..models.packing.classifier import without_encoder

__all__ = ["BERT_LIKE", "FirstTokenClassifier"]

BERT_LIKE = frozenset({"bert", "roberta", "xlm-roberta", "camembert", "electra"})
"""Model types whose layers are those of BERT."""


class FirstTokenClassifier(PackedClassifier):
    """Classifies packed texts by their first tokens.

    If the layers are those of BERT, the last layer computes keys and values for all tokens, but the
    rest for first tokens only. The head reads nothing else, so the logits are the same. The model
    itself does not change, so other code may call it at the same time.

    Args:
        model: a model for sequence classification whose architecture can be packed.
        exact_head: whether the head is applied in float32, whatever the type of the weights.
    """

    def __init__(self, model: PreTrainedModel, *, exact_head: bool = False) -> None:
        super().__init__(model)
        self._exact_head = deepcopy(without_encoder(model)).float() if exact_head else None
        self._is_bert_like = model.config.model_type in BERT_LIKE
        self._pools_mean = getattr(model.config, "classifier_pooling", "cls") == "mean"

    def _states(self, packing: Packing, ids: Tensor, token_types: Tensor | None) -> Tensor:
        """Return the states of first tokens if the layers are those of BERT, else of all tokens."""
        if not self._is_bert_like:
            return super()._states(packing, ids, token_types)
        before, last = _without_last_layer(self._encoder)
        return _first_tokens(last, encode(before, packing, ids, token_types), packing)

    def _head(self, packing: Packing, states: Tensor) -> Tensor:
        if self._pools_mean:
            return super()._head(packing, states)
        first = states if self._is_bert_like else states[packing.bounds[:-1].long()]
        head = self._exact_head or without_encoder(self.model)
        return head(inputs_embeds=first[:, None].to(head.dtype)).logits


def _without_last_layer(base: Any) -> tuple[Any, Any]:
    """Return a model with the same weights, but without last layer and pooler, and that layer."""
    encoder = copy(base.encoder)
    encoder._modules = {**base.encoder._modules, "layer": base.encoder.layer[:-1]}
    shorter = copy(base)
    shorter._modules = {**base._modules, "encoder": encoder, "pooler": None}
    return shorter, base.encoder.layer[-1]


def _first_tokens(layer: Any, states: Tensor, packing: Packing) -> Tensor:
    """Return the output of a BERT layer for first tokens, (texts, width)."""
    first = packing.bounds[:-1].long()
    attended = _attended(layer.attention.self, states, first, packing)
    attended = layer.attention.output(attended[None], states[first][None])
    return layer.output(layer.intermediate(attended), attended)[0]


def _attended(attention: Any, states: Tensor, first: Tensor, packing: Packing) -> Tensor:
    """Return the output of BERT's self-attention for first tokens, (texts, width)."""
    width = attention.attention_head_size
    query, key, value = (
        layer(inputs).unflatten(-1, (-1, width))
        for layer, inputs in (
            (attention.query, states[first]),
            (attention.key, states),
            (attention.value, states),
        )
    )
    return packing.attend(query, key, value, width**-0.5, None).flatten(1)
