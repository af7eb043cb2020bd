"""Linear layers in int8 on a CPU, with a scale for each token and for each output."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor, nn


class QuantisedLinear(nn.Module):
    """A linear layer whose weights and inputs are rounded to 8 bits; nothing is calibrated.

    Each token is scaled by its own largest value, so that no token is rounded otherwise for what
    else is in the batch, and products are added up exactly, in 32 bits.

    Args:
        linear: in float32, on a CPU.
    """

    bias: Tensor

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        weight = linear.weight.detach().float()
        scale = weight.abs().amax(1).clamp_min(torch.finfo(torch.float32).tiny) / 127
        zeros = torch.zeros(len(scale), dtype=torch.int64)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rounded = torch.quantize_per_channel(weight, scale, zeros, 0, torch.qint8)
        self._packed = torch.ops.quantized.linear_prepack(rounded, None)
        bias = torch.zeros(len(scale)) if linear.bias is None else linear.bias.detach().float()
        self.register_buffer("bias", bias)
        # Without VNNI, sums of two products are kept in 16 bits: inputs may have 7 bits only.
        self._reduce_range = not torch.cpu._is_vnni_supported()

    def forward(self, inputs: Tensor) -> Tensor:
        """(..., inputs) → (..., outputs), float32."""
        rows = inputs.reshape(-1, inputs.shape[-1])
        size = torch.maximum(rows.amax(1, keepdim=True), -rows.amin(1, keepdim=True))
        size.clamp_min_(torch.finfo(torch.float32).tiny)
        # The kernel takes one range for all rows: a last row spans it, always the same.
        scaled = rows.new_empty(len(rows) + 1, rows.shape[1])
        torch.div(rows, size, out=scaled[:-1])
        scaled[-1], scaled[-1, 0] = 1, -1
        sums = torch.ops.quantized.linear_dynamic(scaled, self._packed, self._reduce_range)
        outputs = torch.addcmul(self.bias, sums[:-1], size)
        return outputs.reshape(*inputs.shape[:-1], -1)


def quantise(encoder: nn.Module) -> None:
    """Replace the linear layers of an encoder, its pooler's aside, in place."""
    for path, module in list(encoder.named_modules()):
        for name, child in module.named_children():
            if type(child) is nn.Linear and child.in_features > 1 and "pooler" not in path:
                setattr(module, name, QuantisedLinear(child))
