"""One vector of the tokens of each text."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

__all__ = ["POOLINGS", "pooled"]

POOLINGS = {
    "cls": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "last": "pooling_mode_lasttoken",
}
"""How a vector is made of a text's tokens, with sentence-transformers' names."""


def pooled(states: Tensor, lengths: np.ndarray, pooling: str) -> Tensor:
    """Make one vector of the states of each text, (texts, width).

    Args:
        states: hidden states of the texts, one text after the other, (tokens, width).
        lengths: number of tokens of each text, on the CPU, (texts,).
        pooling: one of `POOLINGS`.
    """
    ends = torch.as_tensor(np.cumsum(lengths), device=states.device)
    sizes = torch.as_tensor(lengths, device=states.device)
    if pooling == "mean":
        return torch.segment_reduce(states, "mean", lengths=sizes, axis=0)
    return states[ends - sizes if pooling == "cls" else ends - 1]
