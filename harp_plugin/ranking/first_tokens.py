"""Packed texts through a reranker, as far as its head needs them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from typing import Any

from torch import Tensor
from transformers import PreTrainedModel

from ..packing import PackedClassifier, Packing, prepare
from ..packing.classifier import without_encoder

BERT_LIKE = frozenset({"bert", "roberta", "xlm-roberta", "camembert", "electra"})


class FirstTokenClassifier(PackedClassifier):
    """Classifies packed texts by their first tokens.

    Where the layers are BERT's, the last one is computed for first tokens only, from its attention
    on: a head that reads nothing else gives the same logits. To be called within `ready`.

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
        with ExitStack() as hooks:
            if self._is_cut:
                encoder: Any = self.model.base_model.encoder
                attention = encoder.layer[-1].attention
                first = threading.local()

                def note(_: object, __: object, named: dict[str, Any]) -> None:
                    first.tokens = named["harp_packing"].bounds[:-1].long()

                def cut(_: object, states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
                    return tuple(each[:, first.tokens] for each in states)

                for module, hook, named in (
                    (attention.self, note, True),
                    (attention.output, cut, False),
                ):
                    handle = module.register_forward_pre_hook(hook, with_kwargs=named)
                    hooks.enter_context(handle)
            yield
