"""Load a cross-encoder for scoring, and refuse one whose scores would be random."""

from __future__ import annotations

import torch
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from ..errors import HarpError
from ..models.loading import load_pretrained, without_notices
from ..models.packing.encoder import can_pack
from ..models.packing.products import multiplies_bfloat16
from .prepacked import can_prepack, prepack
from .quantized import can_quantize, quantize

__all__ = ["load_cross_encoder"]


def load_cross_encoder(
    name: str, *, device: torch.device, dtype: str, allow_untrained: bool, seed: int
) -> PreTrainedModel:
    """Load a sequence-classification checkpoint with one or two logits, ready to score.

    Weights that the checkpoint lacks are drawn at random with ``seed``; the global random state
    does not change.

    Raises:
        HarpError: the checkpoint is missing or damaged, has more than two labels, or lacks trained
            weights (such as the head) and ``allow_untrained`` is false; or int8 is requested on a
            GPU, or the installed torch does not have it.
    """
    if dtype == "int8" and device.type != "cpu":
        raise HarpError(f"int8 needs a CPU: choose bfloat16 or float16 on {device}")
    if dtype == "int8" and not can_quantize():
        raise HarpError(f"torch {torch.__version__} has no products of int8: choose bfloat16")
    with without_notices(), torch.random.fork_rng(devices=[]):
        torch.random.default_generator.manual_seed(seed)
        model, info = load_pretrained(
            AutoModelForSequenceClassification,
            name,
            dtype=torch.float32 if dtype == "int8" else getattr(torch, dtype),
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
    if dtype == "int8":
        has_bfloat16 = multiplies_bfloat16() and can_pack(model.config)
        quantize(model.base_model, attention=not has_bfloat16)
        model = model.to(torch.bfloat16) if has_bfloat16 else model
    if device.type == "cpu" and can_prepack(model.dtype):
        prepack(model.base_model)
    return model
