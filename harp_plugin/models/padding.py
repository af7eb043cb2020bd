"""Pad texts that follow each other in one row of tokens."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

__all__ = ["pad_to_mask", "padded_inputs"]


@torch.compiler.disable
def padded_inputs(
    ids: Tensor, lengths: np.ndarray, types: Tensor | None, padding_id: int
) -> tuple[dict[str, Tensor], Tensor]:
    """Return the inputs of a padded pass, and where each token is in it.

    Args:
        ids: token ids of the texts, one text after the other, (tokens,).
        lengths: number of tokens of each text, on the CPU, (texts,).
        types: the type of each token, or None, (tokens,).
        padding_id: id of a padding token.

    Returns:
        The model's inputs by name, each (texts, longest), and the place of each token in the
        flattened ``input_ids``, (tokens,).
    """
    sizes = torch.as_tensor(lengths, device=ids.device)
    attended = torch.arange(int(lengths.max()), device=ids.device) < sizes[:, None]
    padding = torch.full_like(attended, padding_id, dtype=ids.dtype)
    inputs = {
        "input_ids": padding.masked_scatter(attended, ids),
        "attention_mask": attended.long(),
    }
    if types is not None:
        inputs["token_type_ids"] = pad_to_mask(types, attended)
    return inputs, attended.flatten().nonzero()[:, 0]


def pad_to_mask(values: Tensor, mask: Tensor) -> Tensor:
    """Write the values, in their order, where the mask is True, and 0 where it is False."""
    return values.new_zeros(mask.shape).masked_scatter(mask, values)
