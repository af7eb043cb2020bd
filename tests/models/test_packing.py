"""Attention within packed texts: every way against loops."""

import numpy as np
import pytest
import torch

from harp_plugin.models.packing import Packing, attention
from harp_plugin.models.packing.attention import Kernel, kernels

LENGTHS = np.array([1, 2, 3, 3, 3, 7, 12])
CPU = torch.device("cpu")


def loops(query, key, value, bounds, bounds_of_keys, longest, longest_key, *, window_size, scale):
    """What torch and flash-attn document of their kernels for packed texts."""
    assert bounds.dtype == bounds_of_keys.dtype == torch.int32
    assert longest == int(bounds.diff().max()) and longest_key == int(bounds_of_keys.diff().max())
    left, right = window_size
    out = torch.zeros_like(query)
    for text, (start, end) in enumerate(bounds_of_keys.unfold(0, 2, 1).tolist()):
        for place in range(*bounds[text : text + 2].tolist()):
            token = start + place - int(bounds[text])
            first = start if left < 0 else max(start, token - left)
            after = end if right < 0 else min(end, token + right + 1)
            for head in range(query.shape[1]):
                scores = key[first:after, head] @ query[place, head] * scale
                out[place, head] = scores.softmax(0) @ value[first:after, head]
    return out


LOOPS = Kernel(loops, "scale", None)


@pytest.fixture
def states():
    chance = torch.Generator().manual_seed(1)
    shape = (int(LENGTHS.sum()), 2, 4)
    return [torch.randn(shape, generator=chance).requires_grad_() for _ in range(3)]


@pytest.fixture
def packing():
    return Packing.from_lengths(LENGTHS, CPU)


def gradients(found, states):
    weights = torch.arange(found.numel()).reshape(found.shape).cos()
    return torch.autograd.grad((found * weights).sum(), states)


@pytest.mark.parametrize("window", [None, 1, 3, 7, 50])
def test_by_length_and_by_kernel(window, states, packing):
    found = packing.by_length(*states, 0.7, window)
    by_kernel = packing.by_kernel(LOOPS, *states, 0.7, window)
    torch.testing.assert_close(found, by_kernel)
    torch.testing.assert_close(found, packing.attend(*states, 0.7, window))
    expected = gradients(by_kernel, states)
    for grad, wanted in zip(gradients(found, states), expected, strict=True):
        torch.testing.assert_close(grad, wanted)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_by_jagged(states, packing):
    found, expected = packing.by_jagged(*states, 0.7), packing.by_kernel(LOOPS, *states, 0.7, None)
    torch.testing.assert_close(found, expected)
    for grad, wanted in zip(gradients(found, states), gradients(expected, states), strict=True):
        torch.testing.assert_close(grad, wanted)


@pytest.mark.parametrize("window", [None, 3])
def test_queries_of_first_tokens_alone(window, states, packing):
    query, *others = (part.detach() for part in states)
    expected = packing.by_kernel(LOOPS, query, *others, 0.7, window)[packing.starts]
    first = query[packing.starts], *others
    with torch.inference_mode():
        found = {
            "by_kernel": packing.by_kernel(LOOPS, *first, 0.7, window),
            "by_length": packing.by_length(*first, 0.7, window),
            "attend": packing.attend(*first, 0.7, window),
        }
        if window is None:
            found |= {"by_text": packing.by_text(*first, 0.7)}
    for way, values in found.items():
        torch.testing.assert_close(values, expected, msg=lambda text, way=way: f"{way}: {text}")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("first", [True, False])
def test_on_a_device_without_kernels_of_its_own(first, dtype):
    """Such as Apple's; here one that computes nothing but shapes."""
    device = torch.device("meta")
    packing = Packing.from_lengths(LENGTHS, device)
    key = torch.empty(int(LENGTHS.sum()), 2, 4, dtype=dtype, device=device)
    query = key[: len(LENGTHS)] if first else key
    with torch.inference_mode():
        found = packing.attend(query, key, key, 0.7, None)
    assert (found.device, found.dtype, found.shape) == (device, dtype, query.shape)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_queries_of_first_tokens_alone_by_jagged(states, packing):
    query, *others = states
    expected = packing.by_length(query[packing.starts], *others, 0.7, None)
    torch.testing.assert_close(packing.by_jagged(query[packing.starts], *others, 0.7), expected)


@pytest.mark.parametrize("way", ["by_jagged", "by_length"])
def test_dropout(way, states, packing):
    """Of queries and keys that are all alike: a token's share is dropped, the others grow."""
    query, key = torch.zeros_like(states[0]), torch.zeros_like(states[1])
    value = torch.ones_like(states[2])
    more = () if way == "by_jagged" else (None,)
    torch.manual_seed(0)
    found = getattr(packing, way)(query, key, value, 1.0, *more, dropout=0.25)
    counts = found * torch.from_numpy(np.repeat(LENGTHS, LENGTHS))[:, None, None] * 0.75
    torch.testing.assert_close(counts, counts.round(), atol=1e-4, rtol=0)
    assert 0.6 < (counts.mean(dim=(1, 2)).sum() / (LENGTHS**2).sum()) < 0.9


@pytest.mark.parametrize("window", [None, 3])
def test_dropout_that_drops_nothing(window, states, packing, monkeypatch):
    """On a CPU, attention with dropout is computed without SDPA."""
    dropped = []

    def keep(weights, share):
        dropped.append(share)
        return weights

    monkeypatch.setattr(attention, "drop_elements", keep)
    found = packing.by_length(*states, 0.7, window, 0.25)
    assert set(dropped) == {0.25}
    expected = packing.by_kernel(LOOPS, *states, 0.7, window)
    torch.testing.assert_close(found, expected)
    for grad, wanted in zip(gradients(found, states), gradients(expected, states), strict=True):
        torch.testing.assert_close(grad, wanted)


def test_a_kernel_is_told_of_dropout_where_it_has_any(states, packing):
    given = []

    def kernel(query, *_, window_size, softmax_scale, dropout_p=0.0):
        given.append((window_size, softmax_scale, dropout_p))
        return query

    flash = Kernel(kernel, "softmax_scale", "dropout_p")
    packing.by_kernel(flash, *states, 0.5, None)
    packing.by_kernel(flash, *states, 0.5, 4, 0.1)
    assert given == [((-1, -1), 0.5, 0.0), ((3, 3), 0.5, 0.1)]


def test_torchs_kernel_has_the_arguments_that_it_is_given():
    from inspect import signature

    for kernel in kernels():
        names = signature(kernel.function).parameters
        assert {kernel.scale, "window_size"} <= set(names)
        assert kernel.dropout is None or kernel.dropout in names
        assert kernel.dropout or not any("dropout" in name for name in names)


def test_places():
    packing = Packing.from_lengths(np.array([1, 3]), CPU)
    assert packing.positions.tolist() == [0, 0, 1, 2] and packing.text.tolist() == [0, 1, 1, 1]
    assert packing.bounds.tolist() == [0, 1, 4] and packing.starts.tolist() == [0, 1]
