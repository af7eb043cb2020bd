"""Load a cross-encoder for scoring, and refuse one whose scores would be random."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from ..errors import HarpError
from ..models.loading import load_pretrained, resolve_model, without_notices
from ..models.packing.encoder import BERT_LIKE
from ..models.packing.products import has_onednn
from ..models.sentence_encoder import has_default_prompt

__all__ = ["PrepackedLinear", "can_prepack", "check_logits", "load_cross_encoder", "prepack"]

_USUAL_TOKENS = 2048


def load_cross_encoder(
    name: str, *, device: torch.device, dtype: str, allow_untrained: bool, seed: int
) -> PreTrainedModel:
    """Load a sequence-classification checkpoint with one or two logits, ready to score.

    Weights that the checkpoint lacks are drawn at random with ``seed``; the global random state
    does not change.

    Raises:
        HarpError: the checkpoint is missing or damaged, has more than two labels or a default
            prompt, or lacks trained weights (such as the head) and ``allow_untrained`` is false.
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
            " random; name a trained reranker (evaluations measure random ones by allow_untrained)"
        )
    check_logits(model, name)
    if has_default_prompt(resolve_model(name)):
        raise HarpError(
            f"the default prompt of model {name} is not read: write it into the queries, and take "
            "default_prompt_name out of config_sentence_transformers.json"
        )
    model = model.to(device).eval()
    if device.type == "cpu" and can_prepack(model.dtype):
        prepack(model.base_model)
    return model


def check_logits(model: PreTrainedModel, name: str) -> None:
    """Check that a model gives one or two logits for a pair.

    Raises:
        HarpError: it is a language model, or has more than two labels.
    """
    if model.can_generate():
        raise HarpError(
            f"model {name} is a language model, which gives logits for words: name a reranker for "
            "sequence classification"
        )
    if model.config.num_labels > 2:
        raise HarpError(
            f"model {name} has {model.config.num_labels} labels: name a reranker with 1 or 2"
        )


class PrepackedLinear(nn.Module):
    """A linear layer, together with the GELU after it if there is one.

    Args:
        linear: the layer, on a CPU, in float32 or bfloat16.
        gelu: whether GELU is applied to the outputs.
    """

    def __init__(self, linear: nn.Linear, *, gelu: bool) -> None:
        super().__init__()
        weight = linear.weight.detach()
        self._weight = torch.ops.mkldnn._reorder_linear_weight(weight, _USUAL_TOKENS)
        self._bias = None if linear.bias is None else linear.bias.detach()
        self._activation: tuple[str, list[float], str] = (
            ("gelu", [], "none") if gelu else ("none", [], "")
        )

    def forward(self, inputs: Tensor) -> Tensor:
        """Turn (..., inputs) into (..., outputs)."""
        return torch.ops.mkldnn._linear_pointwise(
            inputs, self._weight, self._bias, *self._activation
        )


def can_prepack(dtype: torch.dtype) -> bool:
    """Return whether this machine and the installed torch can do it, and become faster by it."""
    if not has_onednn() or not torch.backends.mkldnn.enabled:
        return False
    if dtype == torch.bfloat16:
        return torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return dtype == torch.float32


def prepack(encoder: nn.Module) -> None:
    """Replace the linear layers of an encoder, except its pooler's, in place.

    Where GELU follows a layer, the new layer applies it, and it is removed from the encoder.
    """
    for path, module in list(encoder.named_modules()):
        if "pooler" in path:
            continue
        for name, child in list(module.named_children()):
            if type(child) is nn.Linear and child.in_features > 1:
                gelu = path.endswith("intermediate") and _has_gelu(encoder.config)
                setattr(module, name, PrepackedLinear(child, gelu=gelu))
                if gelu:
                    module.intermediate_act_fn = nn.Identity()


def _has_gelu(config) -> bool:
    return config.model_type in BERT_LIKE and config.hidden_act == "gelu"
