"""Modules for training on a CPU, which compute the same as torch's own modules in less time."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .packing.attention import drop_elements
from .packing.products import multiplies_by_onednn

__all__ = ["CpuDropout", "CpuLinear", "keep_gradient", "use_cpu_modules"]


def use_cpu_modules(model: nn.Module) -> None:
    """Turn the linear layers and the dropouts of a model on a CPU into those of this file.

    Names and weights stay as they are.
    """
    kinds: dict[type[nn.Module], type[nn.Module]] = {nn.Linear: CpuLinear, nn.Dropout: CpuDropout}
    for module in model.modules():
        module.__class__ = kinds.get(type(module), type(module))


class CpuLinear(nn.Linear):
    """A linear layer whose float32 products, and their gradients, are those of oneDNN.

    Torch takes MKL's, which use half of the width of an AMD processor with AVX-512.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Turn (..., inputs) into (..., outputs)."""
        is_float32 = input.dtype == self.weight.dtype == torch.float32
        is_torchs = input.dim() < 2 or not input.numel() or torch.is_autocast_enabled("cpu")
        if is_torchs or not is_float32 or not multiplies_by_onednn():
            return super().forward(input)
        # A view of the output may be changed in place, where an output that is a view may not.
        rows = _Product.apply(input.flatten(0, -2), self.weight, self.bias)
        return rows.unflatten(0, input.shape[:-1])


class CpuDropout(nn.Dropout):
    """Dropout by `drop_elements`."""

    def forward(self, input: Tensor) -> Tensor:
        """Set elements to 0 and scale the others, if the module is in training."""
        return drop_elements(input, self.p) if self.training else input


def keep_gradient(embedding: nn.Embedding) -> None:
    """Keep the gradient of an embedding from step to step; a batch changes its own rows only.

    Torch makes a gradient of all rows in each step, and adds it to that of a tied language head.

    Args:
        embedding: the embedding of the tokens, on a CPU, in training by one process. It is changed
            in place.
    """
    embedding.__class__ = _EmbeddingWithGradient
    embedding.kept_gradient = torch.zeros_like(embedding.weight)


class _EmbeddingWithGradient(nn.Embedding):
    kept_gradient: Tensor

    def forward(self, input: Tensor) -> Tensor:
        is_trained = torch.is_grad_enabled() and self.weight.requires_grad
        if not is_trained or self.max_norm or self.scale_grad_by_freq:
            return super().forward(input)
        if self.weight.grad is None:  # else gradients of an earlier batch are in it
            self.weight.grad = self.kept_gradient.zero_()
        return _Rows.apply(input, self.weight, self.padding_idx)


class _Product(torch.autograd.Function):
    """The product of a linear layer for rows, by oneDNN in float32."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        ctx.set_materialize_grads(False)
        return _times_transposed(inputs, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        gradient = gradients[0]
        if gradient is None:  # the loss does not read the output
            return None, None, None
        inputs, weight = ctx.saved_tensors
        gradient = gradient.contiguous()
        has_inputs, has_weight, has_bias = ctx.needs_input_grad
        return (
            _times_transposed(gradient, weight.mT) if has_inputs else None,
            _times_transposed(gradient.mT, inputs.mT) if has_weight else None,
            gradient.sum(0) if has_bias else None,
        )


def _times_transposed(left: Tensor, right: Tensor, bias: Tensor | None = None) -> Tensor:
    """Multiply (rows, inner) by the transposed (outputs, inner), and add a bias."""
    return torch.ops.mkldnn._linear_pointwise(left, right, bias, "none", [], "")


class _Rows(torch.autograd.Function):
    """Rows of an embedding, whose gradients are added to the gradient that its weight has."""

    @staticmethod
    def forward(ctx: Any, ids: Tensor, weight: Tensor, padding: int | None) -> Tensor:
        ctx.save_for_backward(ids)
        ctx.weight, ctx.padding = weight, padding
        return F.embedding(ids, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, ...]:
        ids, rows = ctx.saved_tensors[0].flatten(), gradients[0].flatten(0, -2)
        if ctx.padding is not None:
            is_text = ids != ctx.padding
            ids, rows = ids[is_text], rows[is_text]
        sparse = torch.sparse_coo_tensor(ids[None], rows, ctx.weight.shape, check_invariants=False)
        ctx.weight.grad.add_(sparse)
        return None, None, None
