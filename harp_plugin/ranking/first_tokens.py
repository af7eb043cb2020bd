"""Packed texts through a reranker, as far as its head needs them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from torch import Tensor
from transformers import PreTrainedModel

from ..packing import PackedClassifier, Packing, prepare
from ..packing.classifier import without_encoder

BERT_LIKE = frozenset({"bert", "roberta", "xlm-roberta", "camembert", "electra"})


class FirstTokenClassifier(PackedClassifier):
    """Classifies packed texts by their first tokens.

    Where the layers are BERT's, of the last one only keys and values are computed for all tokens,
    the rest for first tokens: a head that reads nothing else gives the same logits. To be called
    within `ready`.

    Args:
        model: a model for sequence classification whose architecture can be packed.
        exact_head: apply the head in float32, whatever the weights are in.
    """

    def __init__(self, model: PreTrainedModel, *, exact_head: bool = False) -> None:
        super().__init__(model)
        self._exact = deepcopy(without_encoder(model)).float() if exact_head else None
        self._is_cut = model.config.model_type in BERT_LIKE
        self._mean = getattr(model.config, "classifier_pooling", "cls") == "mean"

    def _head(self, packing: Packing, states: Tensor) -> Tensor:
        if self._mean:
            return super()._head(packing, states)
        first = states if self._is_cut else states[packing.bounds[:-1].long()]
        head = self._exact or without_encoder(self.model)
        return head(inputs_embeds=first[:, None].to(head.dtype)).logits

    @contextmanager
    def ready(self) -> Iterator[None]:
        """The model ready to be called, from several threads too; others may have had it since."""
        prepare(self.model)
        if not self._is_cut:
            yield
            return
        encoder: Any = self.model.base_model.encoder
        attention = encoder.layer[-1].attention
        first = threading.local()

        def attend(
            states: Tensor, *_: object, harp_packing: Packing, **__: object
        ) -> tuple[Tensor, None]:
            first.tokens = harp_packing.bounds[:-1].long()
            return _of_first_tokens(attention.self, states[0], first.tokens, harp_packing), None

        def cut(_: object, states: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
            return states[0], states[1][:, first.tokens]

        handle = attention.output.register_forward_pre_hook(cut)
        attention.self.forward = attend
        try:
            yield
        finally:
            del attention.self.forward
            handle.remove()


def _of_first_tokens(attention: Any, states: Tensor, first: Tensor, packing: Packing) -> Tensor:
    """What BERT's self-attention gives for first tokens, of shape (1, texts, width)."""
    width = attention.attention_head_size
    query, key, value = (
        layer(inputs).unflatten(-1, (-1, width))
        for layer, inputs in (
            (attention.query, states[first]),
            (attention.key, states),
            (attention.value, states),
        )
    )
    found = packing.attend(query, key, value, width**-0.5, None)
    return found.flatten(1)[None]
