"""Attention of packed texts by products of matrices, on a CPU that multiplies bfloat16 itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

ALIKE = 16
AT_ONCE = 1 << 20
SMALLEST, LARGEST = 1e-30, 1e35


@cache
def multiplies_bfloat16() -> bool:
    """Whether this CPU has instructions for products of bfloat16."""
    checks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(getattr(torch.cpu, name, bool)() for name in checks)


def attend_by_products(
    query: Tensor, key: Tensor, value: Tensor, lengths: np.ndarray, scale: float
) -> Tensor:
    """Attention within each text: exponentials of Q Kᵀ, times V beside a column of ones.

    That column gives the sums that softmax divides by, so the scores are read once. Texts are laid
    out in lengths that are multiples of 16. What fills them up is zero, in V and in that column
    too, so nothing has to be masked. oneDNN keeps code for each shape it meets: shapes are few.
    Heads whose exponentials become too large or too small go through SDPA, which takes the largest
    score off first.

    Args:
        query: of shape (tokens, heads, width), bfloat16 like the others; none needs a gradient.
        key: of each token.
        value: of each token.
        lengths: of the texts, ascending.
        scale: of the scores.

    Returns:
        Of shape (tokens, heads, width).
    """
    out = torch.empty_like(query)
    heads, width = query.shape[1:]
    for texts, length, groups in _alike(lengths):
        queries, keys = query.new_zeros(2, texts, heads, length, width)
        values = query.new_zeros(texts, heads, length, width + 1)
        for group in groups:
            some = group.texts, slice(None), slice(group.length)
            queries[some] = group.of(query)
            keys[some] = group.of(key)
            values[*some, :width] = group.of(value)
            values[*some, width] = 1
        found = _attend(
            queries.flatten(0, 1), keys.flatten(0, 1), values.flatten(0, 1), scale
        ).view(texts, heads, length, width)
        for group in groups:
            group.of(out).copy_(found[group.texts, :, : group.length])
    return out


def _attend(queries: Tensor, keys: Tensor, values: Tensor, scale: float) -> Tensor:
    """Attention of matrices of one length, given the column of ones behind V."""
    found = _products(queries, keys, values, scale)
    sums = found[..., -1:]
    smallest, largest = sums.amin((1, 2)), sums.amax((1, 2))
    out = found[..., :-1] / sums
    fit = (smallest > SMALLEST) & (largest < LARGEST)
    if not fit.all():
        others = ~fit
        query, key, value = (part[others, None] for part in (queries, keys, values[..., :-1]))
        is_text = values[others, None, None, :, -1] > 0
        out[others] = scaled_dot_product_attention(query, key, value, is_text, scale=scale)[:, 0]
    return out


def _products(queries: Tensor, keys: Tensor, values: Tensor, scale: float) -> Tensor:
    """exp(scale Q Kᵀ) V for matrices of one length, some at once, the last ones maybe twice."""
    found = torch.empty_like(values)
    count, length, _ = values.shape
    most = max(1, min(count, AT_ONCE // length**2))
    step = 1 << (most.bit_length() - 1)
    unused = queries.new_empty(1)
    for start in range(0, count, step):
        some = slice(min(start, count - step), min(start, count - step) + step)
        scores = torch.baddbmm(unused, queries[some], keys[some].mT, beta=0, alpha=scale)
        torch.bmm(scores.exp_(), values[some], out=found[some])
    return found


class _Equal(NamedTuple):
    """Texts of one length."""

    tokens: slice
    texts: slice
    length: int

    def of(self, states: Tensor) -> Tensor:
        """Their part of (tokens, heads, width), as (texts, heads, length, width)."""
        return states[self.tokens].unflatten(0, (-1, self.length)).transpose(1, 2)


def _alike(lengths: np.ndarray) -> Iterator[tuple[int, int, list[_Equal]]]:
    """Number of texts, filled-up length, and the texts in it, by their own lengths."""
    different, counts = np.unique(lengths, return_counts=True)
    filled = -(-different // ALIKE) * ALIKE
    start = 0
    for length in np.unique(filled).tolist():
        groups, texts = [], 0
        of_these = filled == length
        for own, count in zip(different[of_these].tolist(), counts[of_these].tolist(), strict=True):
            tokens = slice(start, start + own * count)
            groups.append(_Equal(tokens, slice(texts, texts + count), own))
            start, texts = tokens.stop, texts + count
        yield texts, length, groups
