"""Load a cross-encoder for scoring, and refuse one whose scores would be random."""

from __future__ import annotations

import torch
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from ..errors import HarpError
from ..models.loading import load_pretrained, without_notices
from .prepacked import can_prepack, prepack

__all__ = ["load_cross_encoder"]


def load_cross_encoder(
    name: str, *, device: torch.device, dtype: str, allow_untrained: bool, seed: int
) -> PreTrainedModel:
    """Load a sequence-classification checkpoint with one or two logits, ready to score.

    Weights that the checkpoint lacks are drawn at random with ``seed``; the global random state
    does not change.

    Raises:
        HarpError: the checkpoint is missing or damaged, has more than two labels, or lacks trained
            weights (such as the head) and ``allow_untrained`` is false.
    """
    with without_notices(), torch.random.fork_rng(devices=[]):
        torch.random.default_generator.manual_seed(seed)
        model, info = load_pretrained(
            AutoModelForSequenceClassification,
            name,
            dtype=getattr(torch, dtype),
            output_loading_info=True,
        )
    missing = sorted(info["missing_keys"])
    if missing and not allow_untrained:
        raise HarpError(
            f"model {name} has no trained weights for {', '.join(missing[:4])}: its scores would be"
            " random; name a trained reranker, or set allow_untrained to measure that"
        )
    if model.config.num_labels > 2:
        raise HarpError(
            f"model {name} has {model.config.num_labels} labels: name a reranker with 1 or 2"
        )
    model = model.to(device).eval()
    if device.type == "cpu" and can_prepack(model.dtype):
        prepack(model.base_model)
    return model
