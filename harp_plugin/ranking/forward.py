"""Score batches of pairs by a model in this process."""

from __future__ import annotations

import inspect
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..models.devices import to_device
from ..models.labels import relevant_label
from ..models.packing import PackedClassifier, Packing
from ..models.packing.classifier import without_encoder
from ..models.packing.encoder import with_filler
from ..models.pairs import PackedPairs
from ..models.pooling import padded_inputs
from .batches import BatchRunner, scoring_lock

__all__ = ["FirstTokenClassifier", "Forward"]


class Forward(BatchRunner):
    """Scores pairs in batches.

    Args:
        model: a model with one logit or two; after each call its mode is as it was before.
        tokenizer: the tokenizer of the model.
        batch_tokens: most tokens of a batch; None takes as many as free memory allows.
        exact_head: whether the head is applied in float32.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        batch_tokens: int | None,
        exact_head: bool = False,
    ) -> None:
        super().__init__(model, batch_tokens=batch_tokens)
        self._tokenizer = tokenizer
        if model.config.pad_token_id is None:  # a decoder finds the last token of a text by it
            pads = (tokenizer.pad_token_id, tokenizer.eos_token_id, 0)
            model.config.pad_token_id = next(token for token in pads if token is not None)
        self._relevant = relevant_label(model.config) if model.config.num_labels == 2 else 0
        self._packed: FirstTokenClassifier | None = None
        if self.is_packed:
            with scoring_lock(model.device, model), self._evaluation_mode():
                self._packed = FirstTokenClassifier(model, exact_head=exact_head)

    @torch.inference_mode()
    def _outputs(self, batch: PackedPairs) -> Tensor:
        logits = (
            self._packed_logits(batch) if self._packed else self._padded_logits(batch)
        ).float()
        if logits.shape[1] == 1:
            return logits[:, 0]
        return logits[:, self._relevant] - logits[:, 1 - self._relevant]

    def _packed_logits(self, batch: PackedPairs) -> Tensor:
        assert self._packed
        ids, lengths = torch.from_numpy(batch.ids), batch.lengths
        types = torch.from_numpy(batch.types) if self._has_types else None
        filled = with_filler(ids, lengths, types, longest=self.max_length, step=self._step)
        return self._packed(*filled).logits[: len(lengths)]

    def _padded_logits(self, batch: PackedPairs) -> Tensor:
        model, tokenizer = self.model, self._tokenizer
        ids, types = (to_device(values, model.device) for values in (batch.ids, batch.types))
        padding_id = tokenizer.pad_token_id
        inputs, _ = padded_inputs(
            ids,
            batch.lengths,
            types if self._has_types else None,
            model.config.pad_token_id if padding_id is None else padding_id,
            padding_type=tokenizer.pad_token_type_id,
            left=tokenizer.padding_side == "left",
        )
        return model(**inputs).logits

    @property
    def _has_types(self) -> bool:
        accepted = inspect.signature(self.model.forward).parameters
        return all(
            "token_type_ids" in names for names in (self._tokenizer.model_input_names, accepted)
        )


class FirstTokenClassifier(PackedClassifier):
    """Classifies packed texts by their first tokens.

    If the layers are those of BERT, the last one computes queries too for first tokens only. The
    model itself does not change, so other code may call it at the same time.

    Args:
        model: a model for sequence classification whose architecture can be packed.
        exact_head: whether the head is applied in float32, whatever the type of the weights.
    """

    def __init__(self, model: PreTrainedModel, *, exact_head: bool = False) -> None:
        super().__init__(model)
        self._exact_head = deepcopy(without_encoder(model)).float() if exact_head else None

    def _attended(self, attention: Any, packing: Packing, states: Tensor, rows: Tensor) -> Tensor:
        width = attention.attention_head_size
        query, key, value = (
            layer(inputs).unflatten(-1, (-1, width))
            for layer, inputs in (
                (attention.query, states[rows]),
                (attention.key, states),
                (attention.value, states),
            )
        )
        return packing.attend(query, key, value, width**-0.5, None).flatten(1)

    def _head(self, pooled: Tensor) -> Tensor:
        head = self._exact_head or without_encoder(self.model)
        return head(inputs_embeds=pooled.to(head.dtype)).logits
