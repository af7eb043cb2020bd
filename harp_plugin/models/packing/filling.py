"""A last text of padding, so that batches have few different numbers of tokens."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

__all__ = ["filler_tokens", "with_filler"]

_LARGE_BATCH_TOKENS = 512
_STEP_IN_TRAINING = 128


def filler_tokens(tokens: int, step: int, longest: int | None) -> int:
    """Return how many tokens fill a batch on a CPU up to a multiple of ``step``.

    oneDNN keeps compiled code for each number of tokens: hundreds of megabytes for thousands of
    them in ranking, and gigabytes in training.

    Args:
        tokens: of the batch.
        step: numbers of tokens are multiples of it.
        longest: the most tokens of a text; None if there is no limit.

    Returns:
        0 for a small batch, or where one text cannot have so many tokens.
    """
    count = -tokens % step
    is_too_long = longest is not None and count > longest
    return 0 if tokens < _LARGE_BATCH_TOKENS or is_too_long else count


def with_filler(
    ids: Tensor, lengths: np.ndarray, types: Tensor | None, *, longest: int | None
) -> tuple[Tensor, np.ndarray, Tensor | None]:
    """Add the text of padding to a batch in training; on another device than a CPU, add none.

    Args:
        ids: token ids of the texts, one text after the other, (tokens,).
        lengths: number of tokens of each text, on the CPU, (texts,).
        types: the type of each token, or None, (tokens,).
        longest: as in `filler_tokens`.
    """
    count = filler_tokens(len(ids), _STEP_IN_TRAINING, longest) if ids.device.type == "cpu" else 0
    if not count:
        return ids, lengths, types
    zeros = ids.new_zeros(count)
    filled = None if types is None else torch.cat([types, types.new_zeros(count)])
    return torch.cat([ids, zeros]), np.append(lengths, count), filled
