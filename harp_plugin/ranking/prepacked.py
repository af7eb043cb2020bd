"""Linear layers on a CPU with their weights laid out once as oneDNN multiplies them."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from .first_tokens import BERT_LIKE

USUAL_TOKENS = 2048


class PrepackedLinear(nn.Module):
    """A linear layer, with the GELU behind it where there is one.

    Args:
        linear: on a CPU, in float32 or bfloat16.
        gelu: apply GELU to the outputs.
    """

    def __init__(self, linear: nn.Linear, *, gelu: bool) -> None:
        super().__init__()
        weight = linear.weight.detach()
        self._weight = torch.ops.mkldnn._reorder_linear_weight(weight, USUAL_TOKENS)
        self._bias = None if linear.bias is None else linear.bias.detach()
        self._then: tuple[str, list[float], str] = (
            ("gelu", [], "none") if gelu else ("none", [], "")
        )

    def forward(self, inputs: Tensor) -> Tensor:
        """(..., inputs) → (..., outputs)."""
        return torch.ops.mkldnn._linear_pointwise(inputs, self._weight, self._bias, *self._then)


def can_prepack(dtype: torch.dtype) -> bool:
    """Whether this machine and this torch do it, and gain by it."""
    if not hasattr(torch.ops.mkldnn, "_linear_pointwise") or not torch.backends.mkldnn.enabled:
        return False
    if dtype == torch.bfloat16:
        return torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return dtype == torch.float32 and torch.backends.mkldnn.is_available()


def prepack(encoder: nn.Module) -> None:
    """Replace the linear layers of an encoder, its pooler's aside, in place."""
    replace_linear(encoder, PrepackedLinear)


def replace_linear(
    encoder: nn.Module, make: Callable[..., nn.Module], *, attention: bool = True
) -> None:
    """Replace the linear layers of an encoder, its pooler's aside, in place.

    Args:
        encoder: of a transformers model.
        make: what replaces a layer, given it and whether GELU, which is taken out, is behind it.
        attention: replace those around the attention as well, not the feed-forward ones alone.
    """
    for path, module in list(encoder.named_modules()):
        if "pooler" in path or ("att" in path and not attention):
            continue
        for name, child in list(module.named_children()):
            if type(child) is nn.Linear and child.in_features > 1:
                gelu = path.endswith("intermediate") and _has_gelu(encoder.config)
                setattr(module, name, make(child, gelu=gelu))
                if gelu:
                    module.intermediate_act_fn = nn.Identity()


def _has_gelu(config) -> bool:
    return config.model_type in BERT_LIKE and config.hidden_act == "gelu"
