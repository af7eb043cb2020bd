"""Packed texts through a reranker, as far as its head needs them."""

from __future__ import annotations

from copy import copy, deepcopy
from typing import Any

from torch import Tensor
from transformers import PreTrainedModel

from ..models.packing import PackedClassifier, Packing, encode
from ..models.packing.classifier import without_encoder

BERT_LIKE = frozenset({"bert", "roberta", "xlm-roberta", "camembert", "electra"})


class FirstTokenClassifier(PackedClassifier):
    """Classifies packed texts by their first tokens.

    Where the layers are BERT's, of the last one only keys and values are computed for all tokens,
    the rest for first tokens: a head that reads nothing else gives the same logits. The model
    itself is not changed, so that others may call it in the meantime.

    Args:
        model: a model for sequence classification whose architecture can be packed.
        exact_head: apply the head in float32, whatever the weights are in.
    """

    def __init__(self, model: PreTrainedModel, *, exact_head: bool = False) -> None:
        super().__init__(model)
        self._exact = deepcopy(without_encoder(model)).float() if exact_head else None
        self._is_cut = model.config.model_type in BERT_LIKE
        self._mean = getattr(model.config, "classifier_pooling", "cls") == "mean"

    def _states(self, packing: Packing, ids: Tensor, token_types: Tensor | None) -> Tensor:
        """Of first tokens alone where the layers are BERT's, else of all tokens."""
        if not self._is_cut:
            return super()._states(packing, ids, token_types)
        before, last = _without_last_layer(self._encoder)
        return _first_tokens(last, encode(before, packing, ids, token_types), packing)

    def _head(self, packing: Packing, states: Tensor) -> Tensor:
        if self._mean:
            return super()._head(packing, states)
        first = states if self._is_cut else states[packing.bounds[:-1].long()]
        head = self._exact or without_encoder(self.model)
        return head(inputs_embeds=first[:, None].to(head.dtype)).logits


def _without_last_layer(base: Any) -> tuple[Any, Any]:
    """The same model, weights shared, without its last layer and pooler; and that layer."""
    encoder = copy(base.encoder)
    encoder._modules = {**base.encoder._modules, "layer": base.encoder.layer[:-1]}
    shorter = copy(base)
    shorter._modules = {**base._modules, "encoder": encoder, "pooler": None}
    return shorter, base.encoder.layer[-1]


def _first_tokens(layer: Any, states: Tensor, packing: Packing) -> Tensor:
    """What a layer of BERT's gives for first tokens, of shape (texts, width)."""
    first = packing.bounds[:-1].long()
    attended = _attended(layer.attention.self, states, first, packing)
    attended = layer.attention.output(attended[None], states[first][None])
    return layer.output(layer.intermediate(attended), attended)[0]


def _attended(attention: Any, states: Tensor, first: Tensor, packing: Packing) -> Tensor:
    """What BERT's self-attention gives for first tokens, of shape (texts, width)."""
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
