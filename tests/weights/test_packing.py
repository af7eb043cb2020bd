"""Attention within packed texts: both ways against loops."""

import numpy as np
import pytest
import torch

from harp_plugin.weights.encoders import Packing

LENGTHS = np.array([1, 2, 3, 3, 3, 7, 12])


def loops(query, key, value, bounds, bounds_of_keys, longest, longest_key, *, window_size, scale):
    """What torch and flash-attn document of their kernels for packed texts."""
    assert torch.equal(bounds, bounds_of_keys) and bounds.dtype == torch.int32
    assert longest == longest_key == int((bounds[1:] - bounds[:-1]).max())
    left, right = window_size
    out = torch.zeros_like(value)
    for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        for head in range(query.shape[1]):
            for place in range(start, end):
                first = start if left < 0 else max(start, place - left)
                after = end if right < 0 else min(end, place + right + 1)
                scores = key[first:after, head] @ query[place, head] * scale
                out[place, head] = scores.softmax(0) @ value[first:after, head]
    return out


@pytest.mark.parametrize("window", [None, 1, 3, 7, 50])
def test_both_ways(window):
    chance = torch.Generator().manual_seed(1)
    states = [torch.randn(int(LENGTHS.sum()), 2, 4, generator=chance) for _ in range(3)]
    packing = Packing.of(LENGTHS, 3, torch.device("cpu"))
    found = packing.by_length(*states, 0.7, window)
    torch.testing.assert_close(found, packing.by_kernel(loops, "scale", *states, 0.7, window))
    torch.testing.assert_close(found, packing.attend(*states, 0.7, window))


def test_places():
    packing = Packing.of(np.array([1, 3]), 2, torch.device("cpu"))
    assert packing.positions.tolist() == [0, 0, 1, 2]
    assert packing.bounds.tolist() == [0, 1, 4] and packing.starts.tolist() == [0, 1]
