"""Compute attention by matrix products, on a CPU that has instructions for bfloat16."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

__all__ = ["attend_by_products", "has_onednn", "multiplies_bfloat16", "multiplies_by_onednn"]

_LENGTH_MULTIPLE = 16
_SCORES_PER_PRODUCT = 1 << 20
_SMALLEST_SUM, _LARGEST_SUM = 1e-30, 1e35


@cache
def multiplies_bfloat16() -> bool:
    """Return whether this CPU has instructions for products of bfloat16."""
    checks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(getattr(torch.cpu, name, bool)() for name in checks)


@cache
def has_onednn() -> bool:
    """Return whether the installed torch has products of oneDNN for linear layers."""
    return hasattr(torch.ops.mkldnn, "_linear_pointwise") and torch.backends.mkldnn.is_available()


@cache
def multiplies_by_onednn() -> bool:
    """Return whether products of oneDNN in float32 are at least as fast as torch's own on this CPU.

    On AMD processors with AVX-512, MKL, which torch takes, uses AVX2.
    """
    return has_onednn() and getattr(torch.cpu, "_is_avx512_supported", bool)()


def attend_by_products(
    query: Tensor, key: Tensor, value: Tensor, lengths: np.ndarray, scale: float
) -> Tensor:
    """Compute the attention within each text as the product of exp(Q Kᵀ) and V.

    V has one more column of ones, which gives the sums that softmax divides by, so the scores are
    read only once. Texts are padded with zeros to lengths that are multiples of 16; the zeros are
    also in V and in the column of ones, so no mask is needed. Few lengths mean few shapes, and
    oneDNN keeps compiled code for each shape. If the exponentials of a head become too large or too
    small, SDPA computes that head, because it subtracts the largest score first.

    Args:
        query: queries of all tokens, (tokens, heads, width), bfloat16, without gradient.
        key: keys of all tokens, of the same shape and type.
        value: values of all tokens, of the same shape and type.
        lengths: number of tokens of each text, ascending.
        scale: factor of the scores.

    Returns:
        The output of attention, (tokens, heads, width).
    """
    out = torch.empty_like(query)
    heads, width = query.shape[1:]
    for texts, length, groups in _by_padded_length(lengths):
        queries, keys = query.new_zeros(2, texts, heads, length, width)
        values = query.new_zeros(texts, heads, length, width + 1)
        for group in groups:
            area = group.texts, slice(None), slice(group.length)
            queries[area] = group.part(query)
            keys[area] = group.part(key)
            values[*area, :width] = group.part(value)
            values[*area, width] = 1
        output = _attend(
            queries.flatten(0, 1), keys.flatten(0, 1), values.flatten(0, 1), scale
        ).view(texts, heads, length, width)
        for group in groups:
            group.part(out).copy_(output[group.texts, :, : group.length])
    return out


def _attend(queries: Tensor, keys: Tensor, values: Tensor, scale: float) -> Tensor:
    """Compute the attention of texts of one length; the last column of V is the column of ones."""
    products = _products(queries, keys, values, scale)
    sums = products[..., -1:]
    smallest, largest = sums.amin((1, 2)), sums.amax((1, 2))
    out = products[..., :-1] / sums
    in_range = (smallest > _SMALLEST_SUM) & (largest < _LARGEST_SUM)
    if not in_range.all():
        others = ~in_range
        query, key, value = (part[others, None] for part in (queries, keys, values[..., :-1]))
        is_text = values[others, None, None, :, -1] > 0
        out[others] = scaled_dot_product_attention(query, key, value, is_text, scale=scale)[:, 0]
    return out


def _products(queries: Tensor, keys: Tensor, values: Tensor, scale: float) -> Tensor:
    """Compute exp(scale Q Kᵀ) V for texts of one length, several texts at a time.

    Each product has the same number of texts, so the last one may repeat some texts.
    """
    products = torch.empty_like(values)
    count, length, _ = values.shape
    most = max(1, min(count, _SCORES_PER_PRODUCT // length**2))
    step = 1 << (most.bit_length() - 1)
    unused = queries.new_empty(1)
    for start in range(0, count, step):
        texts = slice(min(start, count - step), min(start, count - step) + step)
        scores = torch.baddbmm(unused, queries[texts], keys[texts].mT, beta=0, alpha=scale)
        torch.bmm(scores.exp_(), values[texts], out=products[texts])
    return products


class _TextsOfOneLength(NamedTuple):
    """Texts that have the same number of tokens."""

    tokens: slice
    texts: slice
    length: int

    def part(self, states: Tensor) -> Tensor:
        """Return their part of (tokens, heads, width), as (texts, heads, length, width)."""
        return states[self.tokens].unflatten(0, (-1, self.length)).transpose(1, 2)


def _by_padded_length(lengths: np.ndarray) -> Iterator[tuple[int, int, list[_TextsOfOneLength]]]:
    """Yield for each padded length the number of texts, that length, and the texts."""
    different, counts = np.unique(lengths, return_counts=True)
    padded = -(-different // _LENGTH_MULTIPLE) * _LENGTH_MULTIPLE
    start = 0
    for length in np.unique(padded).tolist():
        groups, texts = [], 0
        chosen = padded == length
        for own, count in zip(different[chosen].tolist(), counts[chosen].tolist(), strict=True):
            tokens = slice(start, start + own * count)
            groups.append(_TextsOfOneLength(tokens, slice(texts, texts + count), own))
            start, texts = tokens.stop, texts + count
        yield texts, length, groups
