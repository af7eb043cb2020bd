"""Linear layers in int8 on a CPU, with one scale for each token and for each output."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor, nn

from .prepacked import replace_linear

__all__ = ["QuantizedLinear", "can_quantize", "quantize"]

_MOST_ROWS = 2048


class QuantizedLinear(nn.Module):
    """A linear layer whose weights and inputs are rounded to 8 bits, without calibration.

    Each token is scaled by its own largest value, so that the rounding of a token does not depend
    on the rest of the batch. Products are added exactly, in 32 bits.

    Args:
        linear: the layer, in float32, on a CPU.
        gelu: whether GELU is applied to the outputs.
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
        # Without VNNI, sums of two products are kept in 16 bits, so inputs may have only 7 bits.
        self._reduce_range = not getattr(torch.cpu, "_is_vnni_supported", bool)()

    def forward(self, inputs: Tensor) -> Tensor:
        """Turn (..., inputs) into (..., outputs) of the same type."""
        rows = inputs.reshape(-1, inputs.shape[-1])
        outputs = rows.new_empty(len(rows), len(self._bias))
        parts = zip(rows.split(_MOST_ROWS), outputs.split(_MOST_ROWS), strict=True)
        for input_rows, output_rows in parts:
            output_rows.copy_(self._apply_to(input_rows.float()))
        return outputs.reshape(*inputs.shape[:-1], -1)

    def _apply_to(self, rows: Tensor) -> Tensor:
        size = torch.maximum(rows.amax(1, keepdim=True), -rows.amin(1, keepdim=True))
        size.clamp_min_(torch.finfo(torch.float32).tiny)
        # The kernel takes one range for all rows: one more row always has the same whole range.
        scaled = rows.new_empty(len(rows) + 1, rows.shape[1])
        torch.div(rows, size, out=scaled[:-1])
        scaled[-1], scaled[-1, 0] = 1, -1
        sums = torch.ops.quantized.linear_dynamic(scaled, self._packed, self._reduce_range)[:-1]
        result = torch.addcmul(self._bias, sums, size, out=sums)
        return torch.ops.aten.gelu_(result) if self._gelu else result


def can_quantize() -> bool:
    """Return whether the installed torch has the operators."""
    return all(hasattr(torch.ops.quantized, name) for name in ("linear_prepack", "linear_dynamic"))


def quantize(encoder: nn.Module, *, attention: bool) -> None:
    """Replace the linear layers of an encoder, except its pooler's, in place.

    Args:
        encoder: the encoder, in float32, on a CPU.
        attention: whether the layers of the attention are replaced too, or only the feed-forward
            layers.
    """
    replace_linear(encoder, QuantizedLinear, attention=attention)
