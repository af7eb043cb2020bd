"""Score batches of pairs by a model in this process."""

from __future__ import annotations

import inspect

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from ..models.pairs import PackedPairs
from .batches import BatchRunner, scoring_lock
from .first_tokens import FirstTokenClassifier

__all__ = ["Forward"]


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
        self._packed: FirstTokenClassifier | None = None
        if self.is_packed:
            with scoring_lock(model.device, model), self._evaluation_mode():
                self._packed = FirstTokenClassifier(model, exact_head=exact_head)

    @torch.inference_mode()
    def _outputs(self, batch: PackedPairs) -> np.ndarray:
        logits = (
            self._packed_logits(batch) if self._packed else self._padded_logits(batch)
        ).float()
        scores = logits[:, 0] if logits.shape[1] == 1 else logits[:, 1] - logits[:, 0]
        return scores.cpu().numpy()

    def _packed_logits(self, batch: PackedPairs) -> Tensor:
        assert self._packed
        filled = batch.filled(self._filler_tokens(len(batch.ids)))
        types = torch.from_numpy(filled.types) if self._has_types else None
        logits = self._packed(torch.from_numpy(filled.ids), filled.lengths, types).logits
        return logits[: len(batch.lengths)]

    def _padded_logits(self, batch: PackedPairs) -> Tensor:
        tokenizer = self._tokenizer
        inputs = batch.padded(
            tokenizer.pad_token_id or 0,
            tokenizer.pad_token_type_id,
            left=tokenizer.padding_side == "left",
        )
        if not self._has_types:
            del inputs["token_type_ids"]
        device = self.model.device
        return self.model(**{n: torch.from_numpy(v).to(device) for n, v in inputs.items()}).logits

    @property
    def _has_types(self) -> bool:
        accepted = inspect.signature(self.model.forward).parameters
        return all(
            "token_type_ids" in names for names in (self._tokenizer.model_input_names, accepted)
        )
