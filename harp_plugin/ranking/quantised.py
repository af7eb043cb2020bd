"""Linear layers in int8 on a CPU, with a scale for each token and for each output."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor, nn

from .prepacked import replace_linear

ROWS_AT_ONCE = 2048


class QuantisedLinear(nn.Module):
    """A linear layer whose weights and inputs are rounded to 8 bits; nothing is calibrated.

    Each token is scaled by its own largest value, so that no token is rounded otherwise for what
    else is in the batch, and products are added up exactly, in 32 bits.

    Args:
        linear: in float32, on a CPU.
        gelu: apply GELU to the outputs.
    """

    def __init__(self, linear: nn.Linear, *, gelu: bool = False) -> None:
        super().__init__()
        weight = linear.weight.detach().float()
        scale = weight.abs().amax(1).clamp_min(torch.finfo(torch.float32).tiny) / 127
        zeros = torch.zeros(len(scale), dtype=torch.int64)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rounded = torch.quantize_per_channel(weight, scale, zeros, 0, torch.qint8)
        self._packed = torch.ops.quantized.linear_prepack(rounded, None)
        bias = torch.zeros(len(scale)) if linear.bias is None else linear.bias.detach().float()
        self._bias = bias.clone()
        self._gelu = gelu
        # Without VNNI, sums of two products are kept in 16 bits: inputs may have 7 bits only.
        self._reduce_range = not getattr(torch.cpu, "_is_vnni_supported", bool)()

    def forward(self, inputs: Tensor) -> Tensor:
        """(..., inputs) → (..., outputs), of the same type."""
        rows = inputs.reshape(-1, inputs.shape[-1])
        outputs = rows.new_empty(len(rows), len(self._bias))
        for some, into in zip(rows.split(ROWS_AT_ONCE), outputs.split(ROWS_AT_ONCE), strict=True):
            into.copy_(self._apply_to(some.float()))
        return outputs.reshape(*inputs.shape[:-1], -1)

    def _apply_to(self, rows: Tensor) -> Tensor:
        size = torch.maximum(rows.amax(1, keepdim=True), -rows.amin(1, keepdim=True))
        size.clamp_min_(torch.finfo(torch.float32).tiny)
        # The kernel takes one range for all rows: a last row spans it, always the same.
        scaled = rows.new_empty(len(rows) + 1, rows.shape[1])
        torch.div(rows, size, out=scaled[:-1])
        scaled[-1], scaled[-1, 0] = 1, -1
        sums = torch.ops.quantized.linear_dynamic(scaled, self._packed, self._reduce_range)[:-1]
        found = torch.addcmul(self._bias, sums, size, out=sums)
        return torch.ops.aten.gelu_(found) if self._gelu else found


def can_quantise() -> bool:
    """Whether this torch has the operators."""
    return all(hasattr(torch.ops.quantized, name) for name in ("linear_prepack", "linear_dynamic"))


def quantise(encoder: nn.Module, *, attention: bool) -> None:
    """Replace the linear layers of an encoder, its pooler's aside, in place.

    Args:
        encoder: in float32, on a CPU.
        attention: replace those around the attention as well, not the feed-forward ones alone.
    """
    replace_linear(encoder, QuantisedLinear, attention=attention)
