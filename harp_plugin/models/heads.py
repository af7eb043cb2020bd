"""Heads of models, applied outside autocast: their logits are as exact as their weights."""

from __future__ import annotations

from copy import copy
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

__all__ = ["outside_autocast", "with_exact_head"]


def outside_autocast(module: nn.Module, *args: Any, **options: Any) -> Any:
    """Apply a module without autocast, to inputs in the type of its weights.

    Training keeps weights in fp32, so its logits are fp32 products, whatever autocast says. A bf16
    logit has 8 bits: two scores near 100 that differ by less than 0.25 are equal in it.

    Args:
        module: it takes tensors of floats that have another type elsewhere.
        args: its arguments.
        options: its arguments by name.
    """
    weights = (weight.dtype for weight in module.parameters() if weight.is_floating_point())
    dtype = next(weights, torch.float32)

    def cast(value: Any) -> Any:
        is_float = isinstance(value, Tensor) and value.is_floating_point()
        return value.to(dtype) if is_float else value

    tensors = [value for value in (*args, *options.values()) if isinstance(value, Tensor)]
    with torch.autocast(tensors[0].device.type, enabled=False):
        return module(*map(cast, args), **{name: cast(value) for name, value in options.items()})


class _Exact(nn.Module):
    """A module that is always applied by `outside_autocast`."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **options: Any) -> Any:
        return outside_autocast(self.module, *args, **options)


def with_exact_head(model: PreTrainedModel) -> PreTrainedModel:
    """Return a model with the same weights, whose parts behind the encoder ignore autocast.

    These are the parts of the model beside its base, and the pooler of the base.
    """
    base, result = copy(model.base_model), copy(model)
    if pooler := base._modules.get("pooler"):
        base._modules = {**base._modules, "pooler": _Exact(pooler)}
    parts = {name: part and _Exact(part) for name, part in model._modules.items()}
    result._modules = {**parts, model.base_model_prefix: base}
    return result
