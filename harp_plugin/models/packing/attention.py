"""Compute attention within each of many texts that follow each other in one row of tokens."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from inspect import signature
from typing import Any, NamedTuple, Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from ..devices import to_device
from .products import attend_by_products, multiplies_bfloat16

__all__ = ["Kernel", "Packing", "drop_elements", "kernels"]


class Kernel(NamedTuple):
    """A function for packed texts on CUDA, as torch and flash-attn have it.

    Attributes:
        function: takes queries, keys and values, and for queries and keys the bounds of the texts
            and the longest length.
        scale: name of the parameter for the scale of the scores.
        dropout: name of the parameter for the dropout of attention; None if it has no dropout.
        dtypes: types of numbers that it takes.
    """

    function: Callable[..., Any]
    scale: str
    dropout: str | None
    dtypes: tuple[torch.dtype, ...] = (torch.bfloat16, torch.float16)


@dataclass(slots=True)
class Packing:
    """The positions of texts in a row of tokens.

    Attributes:
        lengths: number of tokens of each text, ascending, at least 1, (texts,).
        starts: index of the first token of each text, (texts,).
        text: index of the text of each token, on the device, (tokens,).
        positions: position of each token in its text, on the device, (tokens,).
        bounds: ``starts`` followed by the number of tokens, int32, on the device, (texts + 1,).
        longest: the most tokens of a text.
        kernels: those of the device, the best first.
        masks: masks of attention windows, by length of the texts and width of the window.
    """

    lengths: np.ndarray
    starts: np.ndarray
    text: Tensor
    positions: Tensor
    bounds: Tensor
    longest: int
    kernels: tuple[Kernel, ...] = ()
    masks: dict[tuple[int, int], Tensor] = field(default_factory=dict)

    @classmethod
    def from_lengths(cls, lengths: np.ndarray, device: torch.device, **attributes: Any) -> Self:
        """Return the packing of texts of these lengths, which must ascend."""
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        text = np.repeat(np.arange(len(lengths)), lengths)
        positions = np.arange(bounds[-1]) - bounds[text]
        return cls(
            lengths,
            bounds[:-1],
            to_device(text, device),
            to_device(positions, device),
            to_device(bounds.astype(np.int32), device),
            int(lengths[-1]),
            _kernels_of(device),
            **attributes,
        )

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        scale: float,
        window: int | None,
        dropout: float = 0.0,
    ) -> Tensor:
        """Compute the attention within each text; by a kernel, it can be compiled.

        Args:
            query: queries of all tokens, or of the first token of each text only,
                (tokens, heads, width).
            key: keys of all tokens, (tokens, heads, width).
            value: values of all tokens, (tokens, heads, width).
            scale: factor of the scores.
            window: tokens that are ``window`` or more positions apart do not see each other; None
                sets no limit.
            dropout: fraction of the attention weights that is dropped.

        Returns:
            The output for each query, of the same shape as ``query``.
        """
        for kernel in self.kernels:
            if query.dtype in kernel.dtypes and (not dropout or kernel.dropout):
                return self.by_kernel(kernel, query, key, value, scale, window, dropout)
        return self._without_kernel(query, key, value, scale, window, dropout)

    @torch.compiler.disable
    def _without_kernel(self, query, key, value, scale, window, dropout) -> Tensor:
        if query.is_cuda and window is None:
            return self.by_jagged(query, key, value, scale, dropout)
        if query.is_cuda:
            return self.by_length(query, key, value, scale, window, dropout)
        if window is None and not dropout and not torch.is_grad_enabled():
            if self._is_first_tokens(query):
                return self.by_text(query, key, value, scale)
            is_bfloat16 = query.device.type == "cpu" and query.dtype == torch.bfloat16
            if is_bfloat16 and multiplies_bfloat16():
                return attend_by_products(query, key, value, self.lengths, scale)
        return self.by_length(query, key, value, scale, window, dropout)

    def by_kernel(self, kernel: Kernel, query, key, value, scale, window, dropout=0.0) -> Tensor:
        """Compute the attention of all texts together, by a kernel that takes their bounds."""
        options: dict[str, Any] = {kernel.scale: scale}
        if dropout and kernel.dropout:
            options[kernel.dropout] = dropout
        all_tokens = (self.bounds, self.longest)
        first_tokens = (self._first_token_bounds, 1)
        bounds, most = first_tokens if self._is_first_tokens(query) else all_tokens
        return kernel.function(
            query.contiguous(),
            key.contiguous(),
            value.contiguous(),
            bounds,
            self.bounds,
            most,
            self.longest,
            window_size=(-1, -1) if window is None else (window - 1, window - 1),
            **options,
        )

    def by_jagged(self, query, key, value, scale, dropout=0.0) -> Tensor:
        """Compute the attention of all texts together, by torch's attention over jagged tensors.

        It takes any precision, but no window.
        """
        all_tokens = (self.bounds, int(self.lengths[0]), self.longest)
        first_tokens = (self._first_token_bounds, 1, 1)
        query_tokens = first_tokens if self._is_first_tokens(query) else all_tokens
        queries, keys, values = (
            torch.nested.nested_tensor_from_jagged(
                states.contiguous(), bounds.long(), min_seqlen=fewest, max_seqlen=most
            ).transpose(1, 2)
            for states, (bounds, fewest, most) in zip(
                (query, key, value), (query_tokens, all_tokens, all_tokens), strict=True
            )
        )
        output = scaled_dot_product_attention(queries, keys, values, dropout_p=dropout, scale=scale)
        return output.transpose(1, 2).values()

    def by_length(self, query, key, value, scale, window, dropout=0.0) -> Tensor:
        """Compute the attention of texts of the same length together, in any precision."""
        first, outputs = self._is_first_tokens(query), []
        lengths, counts = (part.tolist() for part in np.unique(self.lengths, return_counts=True))
        sizes = [length * count for length, count in zip(lengths, counts, strict=True)]
        # The gradient of `split` is one tensor; slices would each give a tensor of all tokens.
        split = (
            states.split(counts if first and states is query else sizes)
            for states in (query, key, value)
        )
        for count, length, *parts in zip(counts, lengths, *split, strict=True):
            of_texts = (part.unflatten(0, (count, -1)).transpose(1, 2) for part in parts)
            mask = self.mask(length, window, query.device)
            if first and mask is not None:
                mask = mask[:1]
            output = _attend(*of_texts, mask=mask, scale=scale, dropout=dropout)
            outputs.append(output.transpose(1, 2).flatten(0, 1))
        return torch.cat(outputs)

    def by_text(self, query, key, value, scale) -> Tensor:
        """Compute the attention of first tokens only, which needs no matrix of scores."""
        scores = (query[self.text] * key).sum(-1, dtype=torch.float32) * scale
        padded = scores.new_full((len(query), self.longest, scores.shape[1]), -torch.inf)
        padded[self.text, self.positions] = scores
        weights = padded.softmax(1)[self.text, self.positions]
        output = query.new_zeros(query.shape, dtype=torch.float32)
        output.index_add_(0, self.text, weights[..., None] * value)
        return output.to(value.dtype)

    def _is_first_tokens(self, query: Tensor) -> bool:
        """Return whether ``query`` has the first token of each text only."""
        return len(query) < len(self.text)

    @property
    def _first_token_bounds(self) -> Tensor:
        """The ``bounds`` of texts that have one token each."""
        return torch.arange(
            len(self.lengths) + 1, dtype=self.bounds.dtype, device=self.bounds.device
        )

    def mask(self, length: int, window: int | None, device) -> Tensor | None:
        """Return which tokens see each other, (length, length) bool; None if all of them do."""
        if window is None or length <= window:
            return None
        if (length, window) not in self.masks:
            positions = torch.arange(length, device=device)
            self.masks[length, window] = (positions[:, None] - positions).abs() < window
        return self.masks[length, window]


def _attend(
    query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None, scale: float, dropout: float
) -> Tensor:
    """Compute attention from queries, keys and values, (texts, heads, queries, width).

    SDPA has no kernel with dropout on a CPU, and would look for tokens that see no other, which
    texts do not have. The softmax is in fp32, as transformers' eager attention has it.
    """
    if not dropout or query.is_cuda:
        return scaled_dot_product_attention(query, key, value, mask, dropout, scale=scale)
    scores = (query * scale) @ key.mT
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = scores.softmax(-1, dtype=torch.float32).to(value.dtype)
    return drop_elements(weights, dropout) @ value


@cache
def kernels() -> list[Kernel]:
    """Return the installed kernels, the best first.

    The first is torch's own, from torch 2.11 on, which has no dropout; the second is flash-attn's.
    """
    installed = []
    with suppress(ImportError):
        from torch.nn.attention.varlen import varlen_attn

        if "window_size" in signature(varlen_attn).parameters:
            installed.append(Kernel(varlen_attn, "scale", None))
    with suppress(ImportError):
        from flash_attn import flash_attn_varlen_func

        installed.append(Kernel(flash_attn_varlen_func, "softmax_scale", "dropout_p"))
    return installed


@cache
def _kernels_of(device: torch.device) -> tuple[Kernel, ...]:
    """Return the kernels that run on a device: GPUs have them from the Ampere generation on."""
    is_recent = device.type == "cuda" and torch.cuda.get_device_capability(device) >= (8, 0)
    return tuple(kernels()) if is_recent else ()


_DRAWN_BITS = 16
_DRAWN_AT_ONCE = 64 // _DRAWN_BITS


def drop_elements(states: Tensor, fraction: float) -> Tensor:
    """Set a fraction of the elements to 0, and scale the others so that the mean stays.

    On a CPU, each element has 16 bits of a random number: the fraction is exact to 1 / 65,536.
    Torch draws one number for each element, which takes six times as long.

    Args:
        states: a tensor of any shape.
        fraction: of the elements that are dropped, at least 0 and at most 1.
    """
    if states.device.type != "cpu" or not 0 < fraction < 1:
        return F.dropout(states, fraction)
    possible = 1 << _DRAWN_BITS
    dropped = round(fraction * possible)
    words = torch.empty(-(-states.numel() // _DRAWN_AT_ONCE), dtype=torch.int64)
    drawn = words.random_(-(1 << 63), None).view(torch.int16)[: states.numel()]
    kept = drawn.view(states.shape) >= dropped - possible // 2
    return states * kept.to(states.dtype).mul_(possible / (possible - dropped))
