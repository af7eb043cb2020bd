"""Attention by products of matrices, against SDPA text by text in float32."""

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from harp_plugin.models.packing import Packing, products
from harp_plugin.models.packing.products import attend_by_products

LENGTHS = np.array([1, 1, 2, 15, 16, 16, 17, 30, 30, 33, 64, 100])
HEADS, WIDTH = 3, 8


def drawn(largest=3.0):
    chance = torch.Generator().manual_seed(0)
    states = torch.randn(3, int(LENGTHS.sum()), HEADS, WIDTH, generator=chance)
    states[0] *= largest
    return states.bfloat16()


def text_by_text(states, scale):
    texts = (part.float().split(LENGTHS.tolist()) for part in states)
    found = [
        scaled_dot_product_attention(*(part.transpose(0, 1) for part in text), scale=scale)
        for text in zip(*texts, strict=True)
    ]
    return torch.cat([each.transpose(0, 1) for each in found])


@pytest.mark.parametrize("at_once", [1, 700, 1 << 20])
def test_equal_to_sdpa(at_once, monkeypatch):
    monkeypatch.setattr(products, "_SCORES_PER_PRODUCT", at_once)
    states = drawn()
    found = attend_by_products(*states, LENGTHS, 0.3)
    torch.testing.assert_close(found.float(), text_by_text(states, 0.3), atol=0.06, rtol=0.02)


@pytest.mark.parametrize("largest", [100.0, -100.0])
def test_scores_whose_exponentials_leave_the_range(largest):
    """In one head; only differences of scores matter there."""
    states = drawn()
    states[0, :, 1, 0], states[1, :, 1, 0] = largest, 3
    expected = text_by_text(states, 0.5)
    assert torch.isinf(torch.tensor(0.5 * 3 * abs(largest)).exp())
    found = attend_by_products(*states, LENGTHS, 0.5).float()
    torch.testing.assert_close(found, expected, atol=0.06, rtol=0.02)


def test_one_token_too_large_and_another_too_small():
    states = drawn()
    states[1, :, 0] = 10
    states[0, ::2, 0], states[0, 1::2, 0] = 20, -20
    found = attend_by_products(*states, LENGTHS, 0.5).float()
    torch.testing.assert_close(found, text_by_text(states, 0.5), atol=0.06, rtol=0.02)


def test_a_text_has_the_same_output_beside_others():
    states = drawn()
    alone = attend_by_products(*states[:, -100:], LENGTHS[-1:], 0.3)
    among = attend_by_products(*states, LENGTHS, 0.3)[-100:]
    torch.testing.assert_close(alone, among, atol=0.01, rtol=0.01)


def test_where_it_is_used(monkeypatch):
    """For bfloat16 on a CPU that multiplies it, without gradients, dropout or a window."""
    calls = []

    def counted(*given):
        calls.append(given)
        return attend_by_products(*given)

    monkeypatch.setattr("harp_plugin.models.packing.attention.attend_by_products", counted)
    packing = Packing.from_lengths(LENGTHS, torch.device("cpu"))
    states = drawn()

    def used(states=states, window=None, dropout=0.0):
        calls.clear()
        packing.attend(*states, 0.3, window, dropout)
        return bool(calls)

    for native in (False, True):
        monkeypatch.setattr(
            "harp_plugin.models.packing.attention.multiplies_bfloat16", lambda native=native: native
        )
        assert not used()
        with torch.no_grad():
            assert used() is native
            assert not used(states.float()) and not used(window=4) and not used(dropout=0.1)
