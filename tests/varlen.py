"""An attention kernel for packed texts as a GPU has it, by plain torch, on any device."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from harp_plugin.models.packing import attention
from harp_plugin.models.packing.attention import Kernel


def dense(query, key, value, bounds, bounds_of_keys, longest, longest_key, *, window_size, scale):
    """Attend to all tokens, under a mask of those of the same text."""
    del longest, longest_key
    text, text_of_key = (
        torch.searchsorted(ends[1:], torch.arange(len(states), dtype=ends.dtype), right=True)
        for ends, states in ((bounds, query), (bounds_of_keys, key))
    )
    allowed = text[:, None] == text_of_key
    if window_size[0] >= 0:
        places = torch.arange(len(key))
        allowed = allowed & ((places[:, None] - places).abs() <= window_size[0])
    states = (part.transpose(0, 1)[None] for part in (query, key, value))
    return scaled_dot_product_attention(*states, allowed, scale=scale)[0].transpose(0, 1)


def use_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let packed texts take this kernel instead of the ways of a CPU."""
    kernel = Kernel(dense, "scale", None, (torch.float32,))
    monkeypatch.setattr(attention, "_kernels_of", lambda device: (kernel,))
